"""Mode `auto`: how a question is searched, by the first rule that fits it and whose mode is there.

| rule | fits | mode |
| --- | --- | --- |
| identifier | codes, identifiers, file names or quoted words, and nothing else | `fulltext` |
| question with an identifier | a short question that holds a code, an identifier or a file name | `fulltext,hybrid` |
| the whole | asks what all documents have in common, or about everything there is | `graph_global` |
| several things | joins things, names two entities of the graph, or goes on from one by a relation | `graph_local` |
| exact words | a short question that holds quoted words | `fulltext,hybrid` |
| kind of document | is filtered by a facet | `meta_knowledge` |
| which document, which page | asks where something stands | `two_step` by summaries of files, of pages |
| long documents | any other, where documents are much longer than a passage | `two_step` by summaries of files |
| any other | | `hybrid` |

Of a long document no single passage says what it is about, which its summary does; where a document is hardly more than
a passage, its summary says less than the passage.

A question that refers back to a conversation is judged together with the questions that it refers to, and rewritten
before it is searched.

What stays out: the modes, and resolving conversations (`rag_assets.query.search.rewriting_rules`).
"""

import re
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace

from rag_assets.contracts.modes import (
    FULLTEXT_MODE,
    GRAPH_GLOBAL_MODE,
    GRAPH_LOCAL_MODE,
    HYBRID_MODE,
    META_KNOWLEDGE_MODE,
    REWRITE_MODE,
    TWO_STEP_MODE,
)
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.graph_local import HOW_TO_INDEX
from rag_assets.query.search.index import Index
from rag_assets.query.search.modes import SearchParameters
from rag_assets.query.search.passage_graph import named_entities
from rag_assets.query.search.request import Indexes
from rag_assets.query.search.rewriting_rules import keywords, refers_back, with_history

_READ_CHARS = 1000  # of a longer text the beginning is judged
_LONG = 2  # passages for each summary of a file or page, from which documents are long
_LOOK_UP_CHARS = 100  # a longer text that holds a code is no look-up of it
_WORDS_FIRST = f"{FULLTEXT_MODE},{HYBRID_MODE}"

_QUOTED = re.compile(r"「[^「」]+」|『[^『』]+』|\"[^\"]+\"|“[^”]+”|`[^`]+`")
_FORMATS = (
    "xls[xmb]?|docx?|docm|pptx?|pdf|csv|tsv|jsonl?|ya?ml|xml|html?|md|txt|rtf|od[tsp]|eml|msg|zip|png|jpe?g|svg|vsdx?"
    "|sql|sh|bat|ini|toml|properties|log|py|java|jsp?|tsx?|cs|cpp|go|rb|php"
)
_IDENTIFIER = re.compile(
    # letters with digits after them, as in E0004, A-123, v1.2.3, B10103
    r"(?<![A-Za-z0-9_])(?:[A-Za-z]{1,10}[-.]?[0-9]+[A-Za-z0-9]*(?:[-._][A-Za-z0-9]+)*"
    # words joined as programs do: API_x, access_token, clientName, UserController
    r"|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+|[a-z]{2,}(?:[A-Z][a-z0-9]*)+|[A-Z][a-z]{3,}(?:[A-Z][a-z0-9]+)+)(?![A-Za-z0-9_])"
    rf"|(?<![\w.])[\w.()/\\-]*\w\.(?:{_FORMATS})(?![A-Za-z0-9_])"  # file names
    r"|(?<![\w/])(?:/[\w.{}-]+){2,}"  # paths
)

_ALL_DOCUMENTS = re.compile(
    # a word of its own, not the beginning of one such as 全体会議
    r"(?:全体|全般)(?:的|(?![一-龠々ァ-ヶー])|(?=テーマ|トピック|論点|傾向|特徴|要約|概要|概観|一覧))|全文書|全資料|(?:全て|すべて|全部|あらゆる|各)の?(?:文書|資料|仕様|設計書|ファイル|ドキュメント|規程|報告書)"
    r"|(?:文書|資料|設計書|仕様書|ドキュメント)群"
    r"|\b(?:all|every|entire|whole|across|throughout)\s(?:of\s)?(?:the\s|these\s|our\s|your\s)?"
    r"(?:documents?|files?|collection|corpus|data\s?set|knowledge\sbase|spec(?:ification)?s?|materials?|texts?|records?|reports?)\b"
    r"|\b(?:overall|as\sa\swhole|in\sgeneral|in\stotal)\b",
    re.IGNORECASE,
)
_SURVEY = re.compile(
    r"テーマ|話題|トピック|論点|傾向|特徴|共通|要約|まとめ|概要|概観|一覧|列挙|何が書|どんな内容|どのような内容"
    r"|\b(?:themes?|topics?|trends?|patterns?|features?|summar(?:y|ies|i[sz]e)|overview|outline|list|takeaways?|in\scommon"
    r"|what\s(?:is|are).{0,40}\babout)\b",
    re.IGNORECASE,
)
_MAIN_THEMES = re.compile(
    r"(?:主な|主要な|おもな|全体的な|中心的な|繰り返し現れる)(?:テーマ|話題|トピック|論点|傾向)"
    r"|\b(?:main|major|key|overall|common|central|recurring|top)\s(?:themes?|topics?|trends?|patterns?)\b",
    re.IGNORECASE,
)
_JOINED = re.compile(
    r"との(?:関係|関連|つながり|違い)|の間の|両方|双方|どちらも|共通点"
    r"|\b(?:both|between)\b.+\band\b|\b(?:related\sto|relationship|in\scommon|the\ssame\s.+\sas)\b",
    re.IGNORECASE,
)
_RELATION = re.compile(
    r"の[^の、。]{1,20}の|(?:した|する|している|された|がある)[^、。]{1,15}の"
    # something of another thing, or a thing told by what it does
    r"|\b(?:of|whose|who|that|which|by|where|when)\s\S|\w['’]s?\s",
    re.IGNORECASE,
)
_FIRST_QUESTION_WORD = re.compile(
    r"^\W*(?:(?:in|at|on|by|for|of|from)\s)?(?:who|whose|what|which|where|when|why|how|that)\b(?:['’]s\b)?",
    re.IGNORECASE,
)
_WHICH_DOCUMENT = re.compile(
    r"どの(?:文書|資料|ファイル|ドキュメント|仕様書|設計書|規程|ブック)|(?:文書|資料|ファイル|仕様書|設計書)(?:は|が)?(?:どれ|ありますか|あるか)"
    r"|\b(?:which|what)\s(?:documents?|files?|workbooks?|specs?|specifications?)\b|\bis\sthere\sa\s(?:document|file|spec)\b",
    re.IGNORECASE,
)
_WHICH_PAGE = re.compile(
    r"どの(?:ページ|シート|画面|章|節|スライド)|どこに(?:書|記載|載|記述|説明|定義)"
    r"|\b(?:which|what)\s(?:page|sheet|slide|section|chapter)s?\b"
    r"|\bwhere\s(?:is|are|do|does|can)\b.*\b(?:described|documented|written|defined|explained|specified)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Available:
    """What there is to choose from.

    Attributes:
        indexes: The serving tables.
        answers: Whether an answer is wanted, not passages.
        writes: Whether a language model writes it.
    """

    indexes: Indexes
    answers: bool = False
    writes: bool = False


@dataclass(frozen=True)
class _Question:
    """A question as it is judged."""

    text: str
    parameters: SearchParameters
    indexes: Indexes


@dataclass(frozen=True)
class _Rule:
    """A mode for what fits; with the kind of summaries that choose, where it is for the rule to say."""

    name: str
    mode: str
    fits: Callable[[_Question], bool]
    summaries: str | None = None


def choose_mode(
    query: str, parameters: SearchParameters, available: Available, trace: TraceRecorder
) -> SearchParameters:
    """What is asked of a search, with the mode that `auto` chooses.

    Args:
        query: As asked.
        parameters: What is asked of the search, its conversation included.
        available: What there is to choose from.
        trace: Told the rule, the mode, and which modes would have come first but are not there.

    Raises:
        StoreError: A file of the entity graph is missing or damaged.
    """
    began = time.perf_counter()
    follows = bool(parameters.history) and refers_back(query)
    resolved = with_history(query, parameters.history) if follows else query
    asked = _Question(unicodedata.normalize("NFKC", resolved[:_READ_CHARS]), parameters, available.indexes)
    left_out = []
    for rule in (each for each in _RULES if each.fits(asked)):
        lacking = _lacking(rule.mode, available)
        if lacking is None:
            break
        left_out.append(f"{rule.name}: {rule.mode} is left out: {lacking}")
    # a rewrite makes the keywords that put words first
    mode = f"{REWRITE_MODE}+{HYBRID_MODE if rule.mode == _WORDS_FIRST else rule.mode}" if follows else rule.mode
    summaries = [f"summaries: {rule.summaries}"] if rule.summaries is not None else []
    texts = (f"rule: {'follow-up, ' * follows}{rule.name}", f"mode: {mode}", *summaries, *left_out)
    trace.add("choose", began, 1, texts=texts)
    return replace(parameters, mode=mode, summaries=rule.summaries or parameters.summaries)


def _lacking(mode: str, available: Available) -> str | None:
    """What a mode would need and is not there."""
    indexes = available.indexes
    if mode == TWO_STEP_MODE:
        return None if _filled(indexes.summaries) else "there are no summaries"
    if mode == META_KNOWLEDGE_MODE:
        return None if _filled(indexes.questions) else "there are no questions"
    if mode == GRAPH_LOCAL_MODE:
        return None if _filled(indexes.entities) and indexes.graphs else f"there is no entity graph: {HOW_TO_INDEX}"
    if mode == GRAPH_GLOBAL_MODE:
        if not (_filled(indexes.reports) and indexes.report_tree and indexes.graphs):
            return f"there are no community reports: {HOW_TO_INDEX}"
        if available.answers and not available.writes:
            return "answers from community reports need a language model"
    return None


def _filled(index: Index | None) -> bool:
    return index is not None and index.row_count > 0


def _is_identifier(asked: _Question) -> bool:
    if not (_IDENTIFIER.search(asked.text) or _QUOTED.search(asked.text)):
        return False
    rest = _IDENTIFIER.sub(" ", _QUOTED.sub(" ", keywords(asked.text)))
    return not any(character.isalnum() for character in rest)


def _holds_identifier(asked: _Question) -> bool:
    return len(asked.text) <= _LOOK_UP_CHARS and _IDENTIFIER.search(asked.text) is not None


def _is_on_the_whole(asked: _Question) -> bool:
    everything = _ALL_DOCUMENTS.search(asked.text) and _SURVEY.search(asked.text)
    return bool(everything or _MAIN_THEMES.search(asked.text))


def _names_several(asked: _Question) -> bool:
    """Whether it joins things, names two entities of the graph, or one and a relation that leads on from it."""
    if _JOINED.search(asked.text):
        return True
    if asked.indexes.graphs is None or not _filled(asked.indexes.entities):
        return False
    named = named_entities(asked.indexes.graphs.get(), asked.text)
    rest = _FIRST_QUESTION_WORD.sub("", asked.text)
    return len(named) > 1 or (len(named) == 1 and _RELATION.search(rest) is not None)


def _holds_quoted(asked: _Question) -> bool:
    return len(asked.text) <= _LOOK_UP_CHARS and _QUOTED.search(asked.text) is not None


def _has_long_documents(asked: _Question) -> bool:
    chunks, summaries = asked.indexes.chunks, asked.indexes.summaries
    return summaries is not None and 0 < _LONG * summaries.row_count <= chunks.row_count


def _matches(pattern: re.Pattern[str]) -> Callable[[_Question], bool]:
    return lambda asked: pattern.search(asked.text) is not None


_RULES = (
    _Rule("identifier", FULLTEXT_MODE, _is_identifier),
    _Rule("question with an identifier", _WORDS_FIRST, _holds_identifier),
    _Rule("the whole", GRAPH_GLOBAL_MODE, _is_on_the_whole),
    _Rule("several things", GRAPH_LOCAL_MODE, _names_several),
    _Rule("exact words", _WORDS_FIRST, _holds_quoted),
    _Rule("kind of document", META_KNOWLEDGE_MODE, lambda asked: bool(asked.parameters.filters.facet)),
    _Rule("which document", TWO_STEP_MODE, _matches(_WHICH_DOCUMENT), "file"),
    _Rule("which page", TWO_STEP_MODE, _matches(_WHICH_PAGE), "page"),
    _Rule("long documents", TWO_STEP_MODE, _has_long_documents, "file"),
    _Rule("any other", HYBRID_MODE, lambda _: True),
)
