"""The statements of passages, with the words that each says, stands under and is named by.

What stays out: what a passage states (`rag_assets.query.ask.quoted.statements`).
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from rag_assets.query.ask.answers import Source
from rag_assets.query.ask.quoted.page_sections import PageBlock, body_rows, header_rows
from rag_assets.query.ask.quoted.statements import Statement, statements
from rag_assets.query.ask.quoted.wanted import terms_held, terms_of
from rag_assets.text.folding import fold_name
from rag_assets.text.plain import one_line, squeezed

_UNREAD = -0.4  # how surely a statement answers that was not read: what words tell must be more then
_OWN_NAME = re.compile(  # as in the title block of a document
    r"(?:(?:システム|アプリケーション|アプリ|プロジェクト|PJ|文書|ドキュメント|資料|製品|サービス|ツール|成果物)名称?"
    r"|\b(?:system|application|project|document|product|tool)(?: name| title))\s*[|:]\s*([^|\n]{2,60})",
    re.IGNORECASE,
)
_TITLE_CHARS = 60
_NO_TITLE = re.compile(r" \| |[。.:]$")
_SAYS_COPY = re.compile(  # behind the name of a file
    r"[\W_]*(?:の?コピー|copy|旧版?|old|bak|backup|バックアップ|\d{1,2}[)）])[\W\d_]*", re.IGNORECASE
)
WHICH_OF_ALL = re.compile(
    r"どの(?!よう|くらい|程度)|どれ|何版|\b(?:which|what (?:version|file|document))\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Candidate:
    """A statement of a source, with its terms, those it stands under, and those of title and place; where it was read
    together with the question, how surely it answers.
    """

    source: Source
    statement: Statement
    own: frozenset[str]
    above: frozenset[str]
    named: frozenset[str]
    continued: tuple[tuple[Source, str], ...] = ()  # of a list, the lines that other passages hold
    log_odds: float = _UNREAD
    defines: bool = False  # says what something is that the question wants to have explained
    edition: str = ""  # the line above that says of which version or date the statement is, where that is asked for


def own_names(sources: Sequence[Source]) -> dict[str, frozenset[str]]:
    """By document, the terms of what it calls itself or its system: in its title block, or in its first line."""
    texts: dict[str, str] = {}
    for source in sources:
        first = next((line for line in map(one_line, source.beginning.splitlines()) if line), "")
        is_title = len(first) <= _TITLE_CHARS and not _NO_TITLE.search(first)
        names = _OWN_NAME.findall(unicodedata.normalize("NFKC", f"{source.beginning}\n{source.whole_text}"))
        texts[source.document_id] = " ".join(
            [texts.get(source.document_id, ""), *names, *([first] if is_title else [])]
        )
    return {document: terms_of(text) for document, text in texts.items()}


def without_copies(sources: Sequence[Source], question: str) -> list[Source]:
    """Sources without those whose text another document has, too, of which the original is kept by its name, or else
    the first; all where a question asks which documents say it.
    """
    if WHICH_OF_ALL.search(question):
        return list(sources)
    kept: dict[str, Source] = {}
    for source in sources:
        text = squeezed(source.whole_text)
        first = kept.setdefault(text, source)
        if first.document_id == source.document_id or _is_called(question, first.document_id):
            continue
        if _is_called(question, source.document_id) or _is_copy_of(first.document_id, source.document_id):
            kept[text] = replace(source, rank=first.rank)
    documents = {text: source.document_id for text, source in kept.items()}
    return [
        kept[text] if source.chunk_id == kept[text].chunk_id else source
        for source in sources
        if documents[text := squeezed(source.whole_text)] == source.document_id
    ]


def _is_copy_of(document: str, other: str) -> bool:
    """Whether a document is called as another one with a word behind it that says that it is a copy or an old one."""
    name, other_name = (PurePath(path).stem for path in (document, other))
    return name.startswith(other_name) and _SAYS_COPY.fullmatch(name[len(other_name) :]) is not None


def _is_called(question: str, document: str) -> bool:
    """Whether a question has the name of the file of a document."""
    return fold_name(PurePath(document).stem) in fold_name(question)


def candidates_of(
    source: Source, names: frozenset[str] = frozenset(), blocks: Sequence[PageBlock] = ()
) -> list[Candidate]:
    """The statements of a passage.

    Args:
        source: The passage.
        names: Terms of what its document calls itself.
        blocks: What its page consists of; nothing where that is not known.
    """
    name_terms = terms_held(f"{source.title} {replace(source.citation, heading=None)}") | names
    return [
        Candidate(
            source,
            statement,
            terms_held(f"{statement.group} {statement.text}"),
            terms_held(statement.context),
            name_terms,
        )
        for statement in statements(source.whole_text, header_rows(blocks), body_rows(blocks))
    ]
