"""The modes of search: which there are, what each is for, and how they are put together.

```
mode ::= "auto" | modes | preparing "+" modes        preparing ::= "hyde" | "rewrite"
modes ::= name ("," name)*                           the rankings of several are fused
```

Baselines (`BASELINE_RETRIEVERS`, `BASELINE_PREPARING`) stand in the same places of a name.

What stays out: the searches themselves (`rag_assets.query.search.modes`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rag_assets.contracts.errors import QueryError

VECTOR_MODE = "vector"
FULLTEXT_MODE = "fulltext"
HYBRID_MODE = "hybrid"
WEIGHTED_MODE = "weighted"
TWO_STEP_MODE = "two_step"
GRAPH_LOCAL_MODE = "graph_local"
TEXT_MAP_REDUCE_MODE = "text_map_reduce"
GRAPH_GLOBAL_MODE = "graph_global"
META_KNOWLEDGE_MODE = "meta_knowledge"
HYDE_MODE = "hyde"
REWRITE_MODE = "rewrite"
AUTO_MODE = "auto"
QUESTIONS_MODE = "questions"
SUMMARY_MODE = "summary"
SUMMARY_TEXT_MODE = "summary_text"
AUGMENT_MODE = "augment"
PLAN_MODE = "plan"


@dataclass(frozen=True)
class SearchMode:
    """A mode that is offered."""

    name: str  # as in `--mode`
    label: Mapping[str, str]  # what the web page calls it, by language
    how: Mapping[str, str]  # how it searches, for people, by language
    suits: str  # what it suits, for agents, behind its name: `fulltext` codes, names and exact words
    reads: Literal["passages", "summaries", "questions", "graph"] = "passages"  # what must be stored for it
    uses_vector: bool = True  # whether the query is embedded
    followed_by: str | None = None  # of a mode that prepares the query, the mode that follows where none is named


SEARCH_MODES = (
    SearchMode(
        AUTO_MODE,
        {"en": "Automatic", "ja": "自動"},
        {
            "en": "the default: `weighted`; for questions about the whole, `graph_global`",
            "ja": "既定。`weighted`。全体に関する質問は `graph_global`",
        },
        "chooses by the query",
    ),
    SearchMode(
        WEIGHTED_MODE,
        {"en": "All that speaks for a passage", "ja": "総合"},
        {
            "en": "words, identifiers, meaning, summaries and, where it helps, the entity graph in one score; for "
            "documents, also names",
            "ja": "語・識別子・意味・要約と、役に立つときはエンティティグラフを一つの得点にまとめる。"
            "文書を探すときは名前も",
        },
        "suits most questions",
    ),
    SearchMode(
        HYBRID_MODE,
        {"en": "Meaning and words", "ja": "意味と語句"},
        {"en": "by meaning and by words together", "ja": "意味と語の両方で探す"},
        "meaning and words alone",
    ),
    SearchMode(
        VECTOR_MODE,
        {"en": "Meaning", "ja": "意味"},
        {"en": "by meaning: cosine of embeddings", "ja": "意味で探す（埋め込みのコサイン類似度）"},
        "paraphrases",
    ),
    SearchMode(
        FULLTEXT_MODE,
        {"en": "Words", "ja": "語句"},
        {
            "en": "by words: BM25 over Japanese character pairs, words and parts of identifiers",
            "ja": "語で探す（日本語の 2 文字組、単語、識別子の部分に対する BM25）",
        },
        "codes, names and exact words",
        uses_vector=False,
    ),
    SearchMode(
        TWO_STEP_MODE,
        {"en": "Summaries, then passages", "ja": "要約から箇所へ"},
        {
            "en": "page or file summaries choose where to look, then passages there are searched",
            "ja": "ページまたはファイルの要約で場所を絞ってから、その中の本文を探す",
        },
        "questions about a kind of document",
        "summaries",
    ),
    SearchMode(
        META_KNOWLEDGE_MODE,
        {"en": "Questions that documents answer", "ja": "想定質問"},
        {
            "en": "questions that documents of the same kind answer are searched, widened by what these are about",
            "ja": "同じ種類の文書が答える想定質問を、その種類の知識で広げて探す",
        },
        "those that files of a kind typically answer",
        "questions",
    ),
    SearchMode(
        GRAPH_LOCAL_MODE,
        {"en": "Entities around the question", "ja": "関連する要素"},
        {
            "en": "entities of the query spread over the entity graph to passages; for questions over several "
            "documents",
            "ja": "質問中のエンティティからグラフをたどって本文を探す（複数の文書にまたがる質問向け）",
        },
        "questions that join several documents (needs an entity graph)",
        "graph",
    ),
    SearchMode(
        GRAPH_GLOBAL_MODE,
        {"en": "Community reports", "ja": "コミュニティの報告"},
        {
            "en": "community reports choose passages; for questions about the whole",
            "ja": "コミュニティのレポートから本文を探す（全体に関する質問向け）",
        },
        "questions about the whole (needs an entity graph)",
        "graph",
    ),
    SearchMode(
        TEXT_MAP_REDUCE_MODE,
        {"en": "Every passage", "ja": "全箇所"},
        {"en": "every passage is looked at; the baseline", "ja": "すべての本文を調べる（比較の基準）"},
        "looks at everything and is slow",
    ),
    SearchMode(
        HYDE_MODE,
        {"en": "Imagined answer", "ja": "仮の回答"},
        {
            "en": "by the meaning of an imagined answer, written by a language model; without one, by feedback "
            "from the first passages",
            "ja": "言語モデルが想像した答えの文章に意味が近い本文を探す"
            "（モデルがなければ、最初に見つかった本文で検索を補正）",
        },
        "questions worded unlike the files",
        followed_by=VECTOR_MODE,
    ),
    SearchMode(
        REWRITE_MODE,
        {"en": "Rewritten question", "ja": "質問の書き換え"},
        {
            "en": "keywords for words and sentences for meaning, written by a language model or by rules, then "
            "`hybrid` or another mode",
            "ja": "質問を語句と文に書き換えてから（言語モデルまたは規則）、`hybrid` などで探す",
        },
        "long, spoken questions",
        followed_by=HYBRID_MODE,
    ),
)
MODES = tuple(mode.name for mode in SEARCH_MODES)
PREPARING_MODES = {mode.name: mode.followed_by for mode in SEARCH_MODES if mode.followed_by is not None}
RETRIEVERS = tuple(name for name in MODES if name not in {AUTO_MODE, *PREPARING_MODES})
NEEDS_NO_VECTOR = frozenset(mode.name for mode in SEARCH_MODES if not mode.uses_vector)
GRAPH_MODES = tuple(mode.name for mode in SEARCH_MODES if mode.reads == "graph")

# What the sources compare with, searched as they describe it: for measuring, not offered as a choice.
BASELINE_RETRIEVERS = (QUESTIONS_MODE, SUMMARY_MODE, SUMMARY_TEXT_MODE)
BASELINE_PREPARING = {AUGMENT_MODE: VECTOR_MODE, PLAN_MODE: QUESTIONS_MODE}

_MODES_OF_OPTIONS = {  # options that other modes would leave out without a word
    "level": (GRAPH_GLOBAL_MODE,),
    "dynamic_level": (GRAPH_GLOBAL_MODE,),
    "summaries": (TWO_STEP_MODE, SUMMARY_MODE, SUMMARY_TEXT_MODE),
}

RRF_K = 60.0  # of reciprocal rank fusion, as in its paper (`rag_assets.query.search.fusion`): levels the first ranks


def retriever_of(mode: str) -> str:
    """The mode that finds passages in a mode; several with commas between them where they are fused."""
    first, _, second = mode.partition("+")
    return second or {**PREPARING_MODES, **BASELINE_PREPARING}.get(first, first)


def modes_lacking(option: str, mode: str) -> str | None:
    """The modes that an option is for, in words, where a mode is none of them; else None."""
    modes = _MODES_OF_OPTIONS[option]
    if {*modes} & {*retriever_of(mode).split(",")}:
        return None
    return " or ".join(name for name in modes if name in MODES)


def check_mode(mode: str) -> None:
    """Find out whether there is such a mode.

    Raises:
        QueryError: There is not, or it fuses what cannot be fused.
    """
    first, plus, after = mode.partition("+")
    names = (after if plus else first).split(",")
    preparing_modes = {**PREPARING_MODES, **BASELINE_PREPARING}
    known_retrievers = {*RETRIEVERS, *BASELINE_RETRIEVERS}
    if plus and (first not in preparing_modes or not set(names) <= known_retrievers):
        before, retrievers = " or ".join(PREPARING_MODES), ", ".join(RETRIEVERS)
        raise QueryError(
            f"unknown mode {mode!r}, expected {before} before the plus sign and one of {retrievers}, "
            "or several with commas between, after it"
        )
    if not set(names) <= {*MODES, *known_retrievers, *preparing_modes}:
        raise QueryError(f"unknown mode {mode!r}, expected one of {', '.join(MODES)}, or several with commas between")
    if len(names) > 1 and AUTO_MODE in names:
        raise QueryError(f"mode {mode!r}: {AUTO_MODE} chooses a mode by itself and cannot be fused with others")
    if len(set(names)) < len(names):
        raise QueryError(f"mode {mode!r} names a mode twice: only different modes are fused")
