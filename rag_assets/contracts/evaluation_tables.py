"""Records of evaluations: what was measured of which version, by which questions, and what came.

Rows are added by every run and never computed anew, so published versions do not name them.
"""

import pyarrow as pa

from rag_assets.contracts.table import TEXT, Table, column

_TEXTS = pa.list_(TEXT)
_RUN_ID = column("run_id", TEXT, "Identifies the run: when it ended, UTC, and a random part.")
_SYSTEM = column("system", TEXT, "What was measured, as in `hybrid`, `two_step:file` or `hybrid@3`.")
_TOKENS = (
    column("input_tokens", pa.int64(), "Tokens that language models read."),
    column("output_tokens", pa.int64(), "Tokens that they wrote."),
    column("cost_usd", pa.float64(), "Price in US dollars."),
)

EVALUATION_RUNS = Table(
    "evaluation_runs",
    "One row for each run of an evaluation and each mode or version that it measured.",
    ("run_id", "system"),
    (
        _RUN_ID,
        _SYSTEM,
        column("evaluated_at", pa.timestamp("us", tz="UTC"), "When the run ended, UTC."),
        column("made_by", TEXT, "`evaluate` (the command), `job` (the Dagster job) or `gate` (before publishing)."),
        column("version", pa.int64(), "Version that was asked; null of one that the gate held back.", nullable=True),
        column("mode", TEXT, "Mode of search."),
        column("question_set", TEXT, "Name of the file or folder of the question set."),
        column("set_digest", TEXT, "Digest of the questions that were asked: equal digests, equal questions."),
        column("question_count", pa.int32(), "Questions that were asked."),
        column("choosing_count", pa.int32(), "Those of them that were used for choosing (`purpose`)."),
        column("levels", _TEXTS, "What was searched for: `document`, `page`, `passage`."),
        column("measures", _TEXTS, "Measures of rankings."),
        column("answers", pa.bool_(), "Whether questions were answered as well."),
        column("language_model", TEXT, "`extractive` or the name of the language model."),
        column("embedder", TEXT, "Name of the embedder."),
        column("release", TEXT, "Version of rag_assets."),
        column("seconds", pa.float64(), "Time that searches and answers took."),
        *_TOKENS,
        column("warnings", _TEXTS, "What a reader of the figures has to know."),
    ),
    sharded=False,
    published=False,
    recorded=True,
)

EVALUATION_SCORES = Table(
    "evaluation_scores",
    "Figures of evaluations: one row for each run, system, measure and group of questions, with its interval.",
    ("run_id", "system", "level", "measure", "dimension", "group_name"),
    (
        _RUN_ID,
        _SYSTEM,
        column(
            "level",
            TEXT,
            "`document`, `page`, `passage`, `answer`, a judge as `grading`, or `cost` (time, tokens, dollars).",
        ),
        column("measure", TEXT, "As in `R@5`, `correct` or `milliseconds passage`."),
        column("dimension", TEXT, "`type`, `language`, `format` or `length`; `all` for all questions."),
        column("group_name", TEXT, "Which of them, as in `list`; `all` for all questions."),
        column("mean", pa.float64(), "Mean over the questions."),
        column("low", pa.float64(), "Lower end of its 95 % interval."),
        column("high", pa.float64(), "Upper end of its 95 % interval."),
        column("question_count", pa.int32(), "Questions that it rests on."),
    ),
    sharded=False,
    published=False,
    recorded=True,
)

EVALUATION_RESULTS = Table(
    "evaluation_results",
    "What came of each question of an evaluation: one row for each run, system and question.",
    ("run_id", "system", "question_id"),
    (
        _RUN_ID,
        _SYSTEM,
        column("question_id", TEXT, "Id of the question in its set."),
        column("position", pa.int32(), "Its place in the set, from 1."),
        column("question", TEXT, "The question."),
        column("history", _TEXTS, "Questions that were asked before it."),
        column("type", TEXT, "Kind of question, in the words of the set."),
        column("language", TEXT, "Its language."),
        column("answerable", pa.bool_(), "Whether the documents are to hold an answer."),
        column(
            "expected",
            pa.list_(
                pa.struct(
                    [
                        pa.field("document", TEXT),
                        pa.field("place", TEXT),
                        pa.field("quote", TEXT),
                        pa.field("alternative", pa.bool_()),
                        pa.field("indexed", pa.bool_()),
                    ]
                )
            ),
            "Evidence; `indexed` where the version holds it at every level that was searched.",
        ),
        column("answer_contains", pa.list_(_TEXTS), "Groups of alternatives that a right answer holds one of each."),
        column("mode", TEXT, "How it was searched: the mode that `auto` chose."),
        column(
            "scores",
            pa.list_(pa.struct([pa.field("level", TEXT), pa.field("measure", TEXT), pa.field("value", pa.float64())])),
            "Its values; measures that say nothing of it are left out.",
        ),
        column(
            "results",
            pa.list_(
                pa.struct(
                    [
                        pa.field("chunk_id", TEXT),
                        pa.field("page_id", TEXT),
                        pa.field("document_id", TEXT),
                        pa.field("place", TEXT),
                        pa.field("text", TEXT),
                        pa.field("relevant", pa.bool_()),
                    ]
                )
            ),
            "The first 5 results of the finest level, best first, with the beginning of their text.",
        ),
        column(
            "outcome",
            TEXT,
            "`right`, `wrong` or `refused`; of what the documents do not answer `invented` or `correct`; null where "
            "not judged.",
            nullable=True,
        ),
        column("answer", TEXT, "What was answered; null where nothing was asked for.", nullable=True),
        column("citations", _TEXTS, "Places that the answer cites."),
        column("failure", TEXT, "Why the language model did not answer; else null.", nullable=True),
        column("milliseconds", pa.float64(), "Time of its searches and its answer."),
        *_TOKENS,
    ),
    sharded=False,
    published=False,
    recorded=True,
)
