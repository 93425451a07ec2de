"""How the adapter of the answer scorer (`rag_assets/models/embedding/answers.npz`) was trained, and what it gives.

`gather` reads questions with statements that may answer them, tokenizes them and writes one file:

- question sets in the format of SQuAD (`--squad NAME=FILE`, `--cross NAME=QUESTIONS,CONTEXTS` for a translation of the
  questions): the sentences of the paragraph, sometimes two or three as one, and the sentences of the article that share
  most with the question; for some questions the answer is left out;
- WikiTableQuestions (`--tables FOLDER`): rows of a table, of which one has the answer and is named in the question;
- indexed collections with their question sets (`--questions NAME=HOME,FILE`): the statements that `ask` would read; one
  that holds the answer in another document than the evidence, where one of that is read, too, is left out.

`train` learns low-rank changes of multilingual-e5-small from all but the last, in two rounds, then goes on with the
collections, each third of them left out in turn, and last with all; it prints how often the first statement of those
left out answers, and writes the adapter. It needs torch, takes some ten minutes on one H200 and days on two processors.

    python -m benchmarks.answer_scorer gather --squad jaquad=train.json … --questions dev=HOME,questions.jsonl pack.npz
    python -m benchmarks.answer_scorer train pack.npz rag_assets/models/embedding/answers.npz
"""

import argparse
import json
import random
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.low_rank import LowRankModel, run_training
from rag_assets.contracts.ports import PlacedStatement, Turn
from rag_assets.models.embedding.answer_scorer import input_ids
from rag_assets.models.embedding.e5_weights import write_adapter

CANDIDATES = 10  # of a question of SQuAD
READ, LEARNED = 28, 20  # of a question of a collection, and of these in training; `ask` reads fewer
ELSEWHERE = -1.0  # label of a statement that holds the answer, but of another document than the evidence
MERGED, LEFT_OUT, WITHOUT_CONTEXT = 0.3, 0.22, 0.3  # shares of questions, and of sentences
ROUNDS = ((1e-3, 1.0, 64), (6e-4, 1.0, 96))  # rate, epochs and batch
TUNING_RATE, TUNING_EPOCHS, TUNING_BATCH, REPLAYED = 3e-4, 2.0, 24, 600
FOLDS = 3
PARTIAL = 0.3  # weight of a question whose statements hold but a part of the answer
DROPOUT = 0.1
_END = re.compile(r"(?<=[。！？])(?![」』）)])|\n+|(?<=[.!?])\s+(?=[A-Z0-9\"“(])")

Labelled = tuple[PlacedStatement, float]


@dataclass
class Pack:
    """Questions with labelled statements, in groups named by their source."""

    groups: list[tuple[str, str, list[Labelled]]] = field(default_factory=list)

    def save(self, path: Path, cache_folder: Path) -> None:
        """Tokenize all texts and write them."""
        from rag_assets.models.embedding.embedders import E5Embedder

        tokens = E5Embedder(cache_folder)
        places: dict[str, int] = {}

        def place(text: str) -> int:
            return places.setdefault(text.strip()[:1200], len(places))

        rows = [
            (number, place(question), place(each.text), place(each.place), place(each.context), label)
            for number, (_, question, statements) in enumerate(self.groups)
            for each, label in statements
        ]
        ids = tokens.content_ids(list(places))
        (prefix,) = tokens.content_ids(["query:"])
        np.savez_compressed(
            path,
            allow_pickle=False,
            names=np.array([name for name, _, _ in self.groups]),
            rows=np.array([row[:5] for row in rows], np.int32),
            labels=np.array([row[5] for row in rows], np.float32),
            tokens=np.array([each for text in ids for each in text], np.int32),
            offsets=np.cumsum([0, *map(len, ids)]).astype(np.int64),
            prefix=np.array(prefix, np.int32),
        )


def squad(pack: Pack, name: str, questions: Path, contexts: Path, chance: random.Random) -> None:
    """Questions of a file in the format of SQuAD, whose answers stand in the paragraphs of another or the same."""
    asked, read = (json.loads(path.read_text(encoding="utf-8"))["data"] for path in (questions, contexts))
    for article, other in zip(read, asked, strict=True):
        title = str(article.get("title", "")).replace("_", " ")
        sentences = [each for one in article["paragraphs"] for each in _sentences(one["context"])]
        grams = [(text, _grams(text)) for text in dict.fromkeys(sentences)]
        for paragraph, translated in zip(article["paragraphs"], other["paragraphs"], strict=True):
            for question, wording in zip(paragraph["qas"], translated["qas"], strict=True):
                answers = [] if question.get("is_impossible") else question["answers"]
                statements = _of_paragraph(paragraph["context"], title, answers, chance)
                words = _grams(wording["question"])
                near = sorted(grams, key=lambda each: -len(words & each[1]))[:12]
                around = [
                    text
                    for text, _ in near
                    if text not in paragraph["context"] and not any(each["text"] in text for each in answers)
                ]
                chance.shuffle(around)
                statements += [(PlacedStatement(text[:400], title), 0.0) for text in around[:3]]
                if len(statements) > 1:
                    pack.groups.append((name, wording["question"], statements))


def _of_paragraph(
    context: str, title: str, answers: Sequence[dict[str, Any]], chance: random.Random
) -> list[tuple[PlacedStatement, float]]:
    """Statements of a paragraph, those that hold an answer first."""
    spans = [(each["answer_start"], each["answer_start"] + len(each["text"])) for each in answers]
    parts = _spans(context)
    if chance.random() < MERGED:
        size = chance.choice((2, 2, 3))
        parts = [(part[0][0], part[-1][1]) for part in (parts[i : i + size] for i in range(0, len(parts), size))]
    holds = [any(start < end and stop > begin for start, stop in spans) for begin, end in parts]
    left_out = bool(answers) and chance.random() < LEFT_OUT
    positive: list[Labelled] = []
    negative: list[Labelled] = []
    for number, ((begin, end), held) in enumerate(zip(parts, holds, strict=True)):
        before = context[slice(*parts[number - 1])].strip()[-120:] if number else ""
        if chance.random() < WITHOUT_CONTEXT:
            before = ""
        statement = PlacedStatement(context[begin:end].strip()[:400], title, before)
        if not held:
            negative.append((statement, 0.0))
        elif not left_out:
            positive.append((statement, 1.0))
    chance.shuffle(negative)
    return positive + negative[: max(0, CANDIDATES - 3 - len(positive))]


def _spans(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a text begin and end."""
    found, start = [], 0
    for matched in _END.finditer(text):
        if text[start : matched.start()].strip():
            found.append((start, matched.start()))
        start = max(matched.end(), start)
    return [*found, (start, len(text))] if text[start:].strip() else found


def _sentences(text: str) -> Iterator[str]:
    return (text[begin:end].strip() for begin, end in _spans(text))


def _grams(text: str) -> set[str]:
    """Words of a text, and pairs of characters where it has no blanks."""
    pairs = {text[place : place + 2] for place in range(len(text) - 1) if ord(text[place]) > 127}
    return set(re.findall(r"[a-z0-9]{3,}", text.lower())) | pairs


def tables(pack: Pack, folder: Path, chance: random.Random) -> None:
    """Questions of WikiTableQuestions that name the one row with the answer."""
    for line in (folder / "data" / "training.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        _, question, path, answer = line.split("\t")[:4]
        source = folder / Path(path).with_suffix(".tsv")
        if "|" in answer or not source.is_file():
            continue
        header, *rows = (
            [cell.replace("\\n", " ") for cell in row.split("\t")] for row in source.open(encoding="utf-8")
        )
        words = set(re.findall(r"\w+", question.lower()))
        holding = [row for row in rows if answer in map(str.strip, row)]
        if len(rows) < 3 or len(holding) != 1:
            continue
        others = set(re.findall(r"\w+", " ".join(cell for cell in holding[0] if cell.strip() != answer).lower()))
        if not {word for word in words & others if len(word) > 3 or word.isdigit()}:
            continue
        rest = [row for row in rows if row is not holding[0]]
        chance.shuffle(rest)
        said = [
            " | ".join(
                f"{name.strip()}: {cell.strip()}" for name, cell in zip(header, row, strict=False) if cell.strip()
            )
            for row in (*holding, *rest[:8])
        ]
        pack.groups.append(
            ("tables", question, [(PlacedStatement(text[:400]), float(not at)) for at, text in enumerate(said)])
        )


def collection(pack: Pack, name: str, home: Path, questions: Path) -> None:
    """Questions of an indexed collection, with the statements that `ask` would read and the share of the answer that
    each holds.
    """
    from rag_assets.evaluation.judging import share_held
    from rag_assets.evaluation.questions import read_questions
    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.opening import knowledge_base
    from rag_assets.pipeline.settings import load_settings
    from rag_assets.query.ask.quoted import ranking

    recorder = _Recorder()

    class Recorded(Home):
        answer_scorer = recorder

    ranking.READ_TOGETHER = READ
    base = knowledge_base(Recorded(load_settings(home=home)))
    for question in read_questions(questions):
        recorder.read.clear()
        base.ask(question.text, history=[Turn(each) for each in question.history])
        stems = [unicodedata.normalize("NFC", PurePath(each.document).stem) for each in question.evidence]
        evidence = tuple(f"{stem} "[:60] for stem in stems)
        for text, statements in recorder.read:
            shares = [share_held(each.text, question) if question.answer_contains else 0.0 for each in statements]
            there = [each.place.startswith(evidence) for each in statements]
            is_there = any(share >= 1 and held for share, held in zip(shares, there, strict=True))
            labels = [
                ELSEWHERE if is_there and share >= 1 and not held else share
                for share, held in zip(shares, there, strict=True)
            ]
            pack.groups.append((f"own {name}", text, list(zip(statements, labels, strict=True))))


@dataclass
class _Recorder:
    """An answer scorer that keeps what it is asked."""

    read: list[tuple[str, list[PlacedStatement]]] = field(default_factory=list)

    def score(self, question: str, statements: Sequence[PlacedStatement]) -> NDArray[np.float32]:
        self.read.append((question, list(statements)))
        return np.zeros(len(statements), np.float32)


class Examples:
    """What `gather` wrote: sequences of tokens by group, as the scorer reads them."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file, np.load(file) as stored:
            self._tokens, self._offsets = stored["tokens"], stored["offsets"]
            self._rows, self.labels = stored["rows"], stored["labels"]
            self.names: list[str] = stored["names"].tolist()
            self._prefix: list[int] = stored["prefix"].tolist()
        self.bounds = np.searchsorted(self._rows[:, 0], np.arange(len(self.names) + 1))

    def sequence(self, row: int) -> NDArray[np.int64]:
        """What the model reads of a row."""
        return input_ids(self._prefix, *map(self._text, self._rows[row, 1:].tolist()))

    def rows(self, group: int, most: int, chance: np.random.Generator) -> NDArray[np.int64]:
        """Rows of a group; of more than so many, the best ones and some of the others."""
        rows: NDArray[np.int64] = np.arange(self.bounds[group], self.bounds[group + 1])
        rows = rows[self.labels[rows] != ELSEWHERE]
        if len(rows) <= most:
            return rows
        best = rows[self.labels[rows] >= max(1e-6, self.labels[rows].max())][:6]
        return np.concatenate([best, chance.permutation(np.setdiff1d(rows, best))[: most - len(best)]])

    def _text(self, text: int) -> list[int]:
        ids: list[int] = self._tokens[self._offsets[text] : self._offsets[text + 1]].tolist()
        return ids


class Trainer:
    """Trains the scorer: low-rank changes of the model, and a head."""

    def __init__(self, examples: Examples, seed: int = 0) -> None:
        self.model, self.examples = LowRankModel(seed, head=True), examples

    def scores(self, rows: Sequence[int], drop: float = 0.0) -> Any:
        """Scores of rows, a tensor of shape `(len(rows),)`."""
        means = self.model.means([self.examples.sequence(row) for row in rows], drop)
        kept = self.model.torch.nn.functional.dropout(means, drop)
        return kept @ self.model.learned["head"] + self.model.learned["bias"]

    def fit(self, groups: Sequence[int], rate: float, epochs: float, batch: int, most: int) -> None:
        """Learn from groups: softmax over the statements of each and a score of 0 for none."""

        def loss_of(taken: list[int]) -> Any:
            rows = [self.examples.rows(group, most, self.model.chance) for group in taken]
            return self._loss(self.scores(np.concatenate(rows).tolist(), DROPOUT), rows)

        self.model.fit(groups, rate, epochs, batch, loss_of)

    def first_answers(self, groups: Sequence[int]) -> float:
        """Share of the groups that have an answer whose best statement is one."""
        right = []
        for group in groups:
            rows = np.arange(self.examples.bounds[group], self.examples.bounds[group + 1])
            rows = rows[self.examples.labels[rows] != ELSEWHERE]
            labels = self.examples.labels[rows]
            if len(rows) and labels.max() >= 1:
                with self.model.torch.no_grad():
                    right.append(labels[int(self.scores(rows.tolist()).argmax())] >= 1)
        return float(np.mean(right)) if right else float("nan")

    def _loss(self, scores: Any, groups: Sequence[NDArray[np.int64]]) -> Any:
        torch = self.model.torch
        losses, at = [], 0
        for rows in groups:
            labels = self.examples.labels[rows]
            own, at = scores[at : at + len(rows)], at + len(rows)
            every = torch.logsumexp(torch.cat([own, own.new_zeros(1)]), 0)
            best = labels.max()
            held = torch.from_numpy(labels >= best).to(scores.device)
            right = torch.logsumexp(own[held], 0) if best > 0 else 0.0
            losses.append((every - right) * (1.0 if best in (0, 1) else PARTIAL))
        return torch.stack(losses).mean()


def train(pack: Path, output: Path, limit: int) -> None:
    """Train on a pack, print what is right on collections left out, and write the adapter.

    Args:
        pack: What `gather` wrote.
        output: The adapter.
        limit: Groups of each source that are used at most; 0 for all.
    """
    trainer = Trainer(Examples(pack))
    by_name: dict[str, list[int]] = {}
    for group, name in enumerate(trainer.examples.names):
        by_name.setdefault(name, []).append(group)
    by_name = {name: groups[: limit or None] for name, groups in by_name.items()}
    own = {name: groups for name, groups in by_name.items() if name.startswith("own ")}
    public = [group for name, groups in by_name.items() if name not in own for group in groups]
    for rate, epochs, batch in ROUNDS:
        trainer.fit(public, rate, epochs, batch, CANDIDATES)
    state = trainer.model.state()
    replayed = trainer.model.chance.permutation(np.array(public))[:REPLAYED].tolist()
    names = list(own)
    for left_out in (*(names[at::FOLDS] for at in range(min(FOLDS, len(names)))), []):
        trainer.model.restore(state)
        learned = [group for name, groups in own.items() if name not in left_out for group in groups]
        trainer.fit([*learned, *replayed], TUNING_RATE, TUNING_EPOCHS, TUNING_BATCH, LEARNED)
        for name in left_out:
            print(f"{name}, left out: the first statement answers {trainer.first_answers(own[name]):.3f}", flush=True)
    write_adapter(output, trainer.model.adapter())


def gather(arguments: argparse.Namespace) -> None:
    """Write a pack of what the arguments name."""
    pack, chance = Pack(), random.Random(7)
    for name, path in (each.split("=", 1) for each in arguments.squad):
        squad(pack, name, Path(path), Path(path), chance)
    for name, paths in (each.split("=", 1) for each in arguments.cross):
        questions, contexts = map(Path, paths.split(","))
        squad(pack, name, questions, contexts, chance)
    for folder in arguments.tables:
        tables(pack, folder, chance)
    for name, paths in (each.split("=", 1) for each in arguments.questions):
        home, questions = map(Path, paths.split(","))
        collection(pack, name, home, questions)
    pack.save(arguments.pack, arguments.models)
    print(f"{len(pack.groups)} questions")


if __name__ == "__main__":
    run_training(__doc__ or "", gather, train, ["--tables"])
