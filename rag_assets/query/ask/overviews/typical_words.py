"""Words that are typical of some documents among others, and the sentences that hold most of them.

What stays out: of which documents, and what else is told of them (`rag_assets.query.ask.overviews.overview`).
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from rag_assets.contracts.tables import FILE_SUMMARIES, PAGE_SUMMARIES, SYNTHETIC_QA
from rag_assets.enrich.knowledge.extraction import readable_terms
from rag_assets.query.ask.overviews.telling_entities import READ
from rag_assets.query.stored import StoredTables
from rag_assets.text.language import split_sentences
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import KATAKANA_AND_MARKS

_PAGES_OF = 120  # documents whose pages are read, too, at most
_LEAST_CHARS, _MOST_CHARS = 12, 300  # of what may be told
_LEAST_TERMS = 2  # of what may be told
_TRIED = 3  # statements of a group that are looked for in passages
_INSTRUCTION = 0.4  # weight of what tells how to fill in a form, and of a note
_LIST = 1.5  # for what stands in a list or overview of documents
_PURPOSE_WEIGHT = 1.5  # for what says what a document or system is for
_NAME, _PLAIN, _INFLECTED = 1.3, 0.35, 0.1  # weight of an English word: a name, any other, and a verb or adverb
_SHORT, _PAIR = 0.4, 2  # weight of a word of two ideographs, which has many uses
_PART = " / "  # between the parts of a summary
IS_LIST = re.compile(r"一覧|概要|概説|要件定義|基本設計|はじめに|readme|index|overview|summary", re.IGNORECASE)
_ENDED = re.compile(r"(?<![\d.])[。．.!！]$")
_NO_TERM = re.compile(r"\d|^(?:ID|No|NO|DB|OK|NG)$|^本.$|[_.]")
_NOT_NOUN = re.compile(r"[a-z]+(?:ed|ing|ly)")
_NO_PROSE = re.compile(  # data, markup, lists of headings
    r"[{}<>=|\\]|\*(?: ?\*){2}|\d(?:\D{1,6}\d){4}|^[\W\d]*$|(?:[^\s、]{1,12}、){4}"
)
_PURPOSE = re.compile(
    r"本(?:書|資料|文書|システム|機能|ガイド|規程)|目的|概要|(?:を|について)(?:示|説明|定義|規定|記述)"
    r"|\b(?:this (?:document|guide|paper|report|manual|system|project)|purpose|aims?|introduc\w+|provides?)\b",
    re.IGNORECASE,
)
_REFERS = re.compile(r"ください|下さい|参照|スローされ|\b(?:please|see|refer)\b", re.IGNORECASE)
_INSTRUCTS = re.compile(
    r"^\W*※|^[（(]?注|(?:記[入載述]|選択|削除|入力)(?:する|して(?:ください|下さい))[。.]?"
    r"|\b(?:fill in|enter the|please)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class TypicalSentence:
    """A sentence of a document, and its words."""

    document_id: str
    text: str
    terms: frozenset[str]


@dataclass(frozen=True)
class TypicalWords:
    """The words of all documents read."""

    statements: Mapping[str, tuple[TypicalSentence, ...]]  # by document, in order
    holders: Mapping[str, frozenset[str]]  # the documents of each word, by folded word
    spelled: Mapping[str, str]  # how each is spelled most

    @classmethod
    def of(cls, statements: Sequence[TypicalSentence]) -> "TypicalWords":
        """The words of statements."""
        by_document: dict[str, list[TypicalSentence]] = {}
        holders: dict[str, set[str]] = {}
        spellings: dict[str, Counter[str]] = {}
        for statement in statements:
            by_document.setdefault(statement.document_id, []).append(statement)
            for term in statement.terms:
                holders.setdefault(term.casefold(), set()).add(statement.document_id)
                spellings.setdefault(term.casefold(), Counter())[term] += 1
        return cls(
            {document: tuple(own) for document, own in by_document.items()},
            {term: frozenset(documents) for term, documents in holders.items()},
            {
                term: min(counts, key=lambda spelling: (-counts[spelling], spelling))
                for term, counts in spellings.items()
            },
        )

    def telling(self, documents: Collection[str], *, one_each: bool, purposeful: bool = False) -> list[TypicalSentence]:
        """What some documents say, one sentence of each or all, those with most typical words first."""
        scores = self._scores(documents)

        def score(statement: TypicalSentence) -> float:
            weight = sum(scores.get(term.casefold(), 0.0) for term in statement.terms) / math.sqrt(
                4 + len(statement.terms)
            )
            weight *= _PURPOSE_WEIGHT if _PURPOSE.search(statement.text) else 1
            weight *= _INSTRUCTION if _INSTRUCTS.search(statement.text) else 1
            return weight * (_LIST if IS_LIST.search(PurePath(statement.document_id).name) else 1)

        statement_lists = [self.statements.get(document, ()) for document in sorted(documents)]
        best = (
            [max(own, key=score) for own in statement_lists if own]
            if one_each
            else [statement for own in statement_lists for statement in own]
        )
        if purposeful:
            best = [
                statement
                for statement in best
                if _PURPOSE.search(statement.text) and not _REFERS.search(statement.text)
            ]
        return sorted(best, key=lambda statement: -score(statement))[:_TRIED]

    def _scores(self, documents: Collection[str]) -> dict[str, float]:
        """How typical words are of some documents: how many hold them, for how few of all do."""
        least = 2 if len(documents) > 2 else 1
        counts = Counter(
            term
            for document in documents
            for term in {t.casefold() for statement in self.statements.get(document, ()) for t in statement.terms}
        )
        return {
            term: self._weight(term) * count * (count / len(self.holders[term])) ** 0.5
            for term, count in counts.items()
            if count >= least
        }

    def _weight(self, term: str) -> float:
        """How much a word names something: a name or a compound more than a verb or a short word of many uses."""
        rarity = math.log(2 + len(self.statements) / len(self.holders[term]))
        if not term.isascii():
            return rarity * (_SHORT if len(term) == _PAIR and not _is_katakana(term) else 1.0)
        if self.spelled[term] != term:
            return rarity * _NAME
        return rarity * (_INFLECTED if _NOT_NOUN.fullmatch(term) else _PLAIN)


def summary_sentences(documents: Sequence[str], stored: StoredTables) -> list[TypicalSentence]:
    """What documents say, by their summaries, the answers of their questions and, of few documents, their pages."""
    texts: dict[str, dict[str, None]] = {document: {} for document in documents}
    read_documents = documents if len(documents) < READ else None
    for row in stored.read(FILE_SUMMARIES, ["document_id", "text"], read_documents).to_pylist():
        parts = row["text"].split(_PART)
        texts.get(row["document_id"], {}).update(dict.fromkeys(parts[1:] or parts))
    for row in stored.read(SYNTHETIC_QA, ["document_id", "answer"], read_documents).to_pylist():
        texts.get(row["document_id"], {})[one_line(row["answer"])] = None
    if len(documents) <= _PAGES_OF:
        for row in stored.read(PAGE_SUMMARIES, ["document_id", "text"], documents).to_pylist():
            texts.get(row["document_id"], {}).update(dict.fromkeys(row["text"].split(_PART)[2:]))
    sentences = (
        TypicalSentence(document, text, _terms(text))
        for document in sorted(texts)
        for text in dict.fromkeys(part for whole in texts[document] for part in split_sentences(whole))
        if _LEAST_CHARS <= len(text) <= _MOST_CHARS and _ENDED.search(text) and not _NO_PROSE.search(text)
    )
    return [sentence for sentence in sentences if len(sentence.terms) >= _LEAST_TERMS]


def _terms(text: str) -> frozenset[str]:
    """Words of a text that may name what it is about; no codes. A word that only begins it is no name."""
    terms = (term for term in readable_terms(text) if not _NO_TERM.search(term))
    return frozenset(term.lower() if text.startswith(term) and term.istitle() else term for term in terms)


def _is_katakana(term: str) -> bool:
    """Whether a word is written in katakana."""
    return re.fullmatch(f"[{KATAKANA_AND_MARKS}]+", term) is not None
