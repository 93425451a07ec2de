"""Questions for what one document is about, which they name: 「単体テスト標準の概要」, "Summarize the pricing memo".

A question asks so where it says nothing but that and a name. A name with an extension, or written as names of files
are, is that of a document; any other is only where it ends in a word for documents (設計書, "guide"), or the question
says that it means one. What is asked of a term, a function or a row of a table is none: 「顧客登録の概要」, "What is
the error about?".

What stays out: what is said of the document (`rag_assets.query.ask.overviews.overview`), and several documents together
(`rag_assets.query.ask.overviews.scope`).
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Self

import pyarrow.compute as pc

from rag_assets.contracts.formats import EXTENSIONS
from rag_assets.contracts.tables import CHUNKS, DOCUMENTS
from rag_assets.query.stored import StoredTables
from rag_assets.text.folding import content_terms, content_words, fold_name, held_share
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import HIRAGANA, KANJI

_READ_CHARS = 200  # a longer question says more
_TITLE_CHARS = 100  # of a line with which a document begins, which may be its title
_NO_TITLE = re.compile(r" \| |[。.:：]$")
_LEAST_CHARS = 2  # of a name
_COLUMNS = ("document_id", "folder", "format", "status", "title", "page_count")
_DOCUMENT_JA = "文書|資料|書類|ドキュメント|ファイル"
_DOCUMENT_EN = r"(?:documents?|docs?|files?|workbooks?|spreadsheets?|pdfs?)"
_KIND_JA = (  # what names of documents end in
    r"(?:書|標準|規程|規則|規約|規定|基準|方針|要綱|要領|計画|ガイド(?:ライン|ブック)?|マニュアル|手引き?|一覧表?|目録|議事録|会議録|記録|報告|レポート|白書"
    r"|メモ|台帳|ノート|通知|案内|質問集?|問答集|FAQ|Q&A|資料|解説|概説|入門|カタログ|便覧|要覧|[年月週日]報|約款|提案|企画|論文|フロー|[^\s]図|WBS|仕様"
    r"|リスト|チラシ|パンフレット|スライド|説明会)"
)
_KIND_EN = (
    r"(?:guide(?:line)?s?|manuals?|handbooks?|reports?|minutes|memos?|notes?|papers?|articles?|spec(?:ification)?s?|policy|policies|plans?"
    r"|proposals?|contracts?|agreements?|letters?|references?|standards?|catalog(?:ue)?s?|datasheets?|brochures?|calls?|transcripts?|slides|decks?"
    r"|presentations?|sheets?|lists?|forms?|receipts?|invoices?|budgets?|faqs?|books?|e?mails?|charters?|bylaws|surveys?|study|reviews?|statements?"
    r"|newsletters?|readme|changelogs?|leases?)"
)
_ALONE = re.compile(  # kinds that mean a document where nothing else is named
    "議事録|会議録|マニュアル|ガイド(?:ライン|ブック)?|手引き?|報告書|レポート|白書|カタログ|論文|[年月週日]報|要領|仕様書|手順書|契約書|説明書"
    "|guide(?:book|line)?s?|manuals?|handbooks?|reports?|minutes|memos?|papers?|articles?|receipts?|invoices?|brochures?|transcripts?"
    "|letters?|newsletters?|slides|decks?|presentations?|books?|catalog(?:ue)?s?|contracts?|leases?|agreements?",
    re.IGNORECASE,
)
_IS_DOCUMENT = re.compile(  # said of any
    rf"(?:報告書?|レポート|資料|{_DOCUMENT_JA}|メモ|ノート|(?<![A-Za-z])(?:reports?|notes?|papers?|{_DOCUMENT_EN}))$",
    re.IGNORECASE,
)
_KIND = rf"(?:{_KIND_JA}|(?<![A-Za-z])(?:{_KIND_EN}|{_DOCUMENT_EN}))"
_OF_KIND = re.compile(rf"{_KIND}(?:\s?[（(][^（()）]*[）)]|\s+(?:of|for|from|on)\s.+)?$", re.IGNORECASE)
_LAST_KIND = re.compile(f"{_KIND}$", re.IGNORECASE)
_ADVERBS = re.compile(
    "ざっくり(?:と)?|ざっと|簡単に|簡潔に|手短に|短く|一言で|ひとことで|大まかに|おおまかに|要するに|かいつまんで|全体として|箇条書きで"
    "|(?:わかり|分かり)やすく|[0-9]{1,3}(?:行|文字?|字|点)(?:以内|程度|くらい|ぐらい)?[でに]"
    r"|,?\s*\b(?:please|briefly|quickly|in\s+(?:short|brief|a\s+nutshell)|for\s+(?:me|us)"
    r"|in\s+(?:a\s+few|one|two|three|\d+)\s+(?:words?|sentences?|lines?|bullets?|points?|paragraphs?))\b",
    re.IGNORECASE,
)
_NUMBERS_EN = ("one", "two", "three", "four", "five")
_SIZE = re.compile(
    r"([0-9]{1,2})(?:行|文(?!字)|点|つ)(?:以内|程度|くらい|ぐらい)?[でに]"
    rf"|,?\s*\bin\s+([0-9]{{1,2}}|{'|'.join(_NUMBERS_EN)})\s+(?:sentences?|lines?|bullets?(?:\s+points?)?|points?)\b",
    re.IGNORECASE,
)
_MOST_LINES = 10  # of an overview, that are counted
_NAMED_ALONE = re.compile("を[、。]?$")
_BEGINNING = re.compile(
    r"^(?:すみません|ねえ|ところで|それと|あと|では|じゃあ|(?:hi|hello|hey|so|ok|okay|and|also)\b)[、,。!\s]*"
    r"|^(?:can|could|would|will)\s+you\s+|^(?:i\s+(?:want|need)|i(?:'d|\s+would)\s+like)\s+(?:you\s+)?(?:to\s+)?",
    re.IGNORECASE,
)
_SUMMARY_JA = (
    "(?:概要|要約|要点|あらまし|サマリー?|骨子|大意|全体像|中身|内容|ポイント|主旨|趣旨|まとめ|概略|アウトライン|大筋)"
)
_END_JA = f"(?:[{HIRAGANA}、]*(?:何|教え|示|説明|知|見|聞|願|出|作|書|挙|紹介|話|下|頂|欲|確認)?[{HIRAGANA}]*)"
_THING_JA = "(?:文書|資料|書類|ドキュメント|ファイル|もの)"
_WRITTEN_JA = (  # what has been written, not what is to be
    rf"(?:書[かい]|述べ|載|まとま|まとめ|扱|定め|取り上げ|[{KANJI}]{{1,3}}[しさ])(?![{HIRAGANA}]*(?:ば|たら|べき))"
    rf"[{HIRAGANA}]{{0,3}}?[てた][{HIRAGANA}]{{0,3}}{_THING_JA}?"
)
_ABOUT_JA = "(?:に(?:つい|関し)て|に関する)の?"
_WHAT_JA = "(?:(?:何|なに)|(?:どんな|どういった|どのような|どういう)(?:こと|もの|内容))"
_KIND_OF_JA = "(?:何の|どんな|どういった|どのような|どういう)"
_POLITE_EN = (
    r"(?:(?:give|show|tell|write|send)\s+(?:me|us)\s+|provide\s+|write\s+|what(?:'s|\s+is|\s+are)\s+|is\s+there\s+)?"
)
_SUMMARY_EN = (
    r"(?:(?:short|brief|quick|concise|rough|general|executive)\s+)?(?:summary|overview|outline|synopsis|gist|abstract|recap"
    r"|(?:main|key)\s+(?:points?|messages?|ideas?)|takeaways?|contents?)\s+(?:of|for|on|from)"
)
_BE_EN = r"(?:'s|\s+(?:is|are|was|were))"
_SAYS_EN = r"(?:cover|say|contain|describe|discuss|deal\s+with|talk\s+about|tell\s+(?:me|us)|address)"
_ASKED = tuple(
    re.compile(rf"^{pattern}$", re.IGNORECASE)
    for pattern in (
        rf"(?P<name>.+?)の(?:主な|大まかな|簡単な|全体の)?(?P<part>{_SUMMARY_JA}){_END_JA}",
        rf"(?P<name>.+?)(?:を|について)(?:要約|まとめ|概観|サマ){_END_JA}",
        rf"(?P<name>.+?)(?:は|って|とは|に|で)[{HIRAGANA}、]{{0,6}}{_WHAT_JA}[がを]{_WRITTEN_JA}[{HIRAGANA}]*",
        rf"(?P<name>.+?)(?:は|って|とは)、?{_WHAT_JA}{_ABOUT_JA}(?:{_WRITTEN_JA}|(?P<said>{_DOCUMENT_JA}))?[{HIRAGANA}]*",
        rf"(?P<name>.+?)(?:は|って|とは)、?{_KIND_OF_JA}(?:(?P<said>{_DOCUMENT_JA})|内容|話|中身|説明)[{HIRAGANA}]*",
        r"(?:summari[sz]e|sum\s+up|recap|outline)\s+(?P<name>.+)",
        rf"{_POLITE_EN}(?:an?\s+|the\s+)?{_SUMMARY_EN}\s+(?P<name>.+)",
        rf"(?:(?:tell|explain\s+to)\s+(?:me|us)\s+)?what{_BE_EN}?\s+(?P<name>.+?)(?:{_BE_EN}|\s+all|\s+mainly|\s+mostly)*\s+about",
        rf"what\s+do(?:es)?\s+(?P<name>.+?)\s+(?:mainly\s+|mostly\s+)?{_SAYS_EN}",
        r"(?P<name>.+?)[,:]?\s+(?:summary|overview)",
    )
)
_SAID = re.compile(
    rf"^(?:(?:文書|資料|ファイル)(?=[「『\"“\s])|(?:the\s+)?{_DOCUMENT_EN}\s+(?:(?:named|called|titled)\s+)?(?=\S))"
    rf"|(?:(?:という|の)(?:{_DOCUMENT_JA})|というメール|(?<=[^\w]){_DOCUMENT_EN}|(?<=[」』\"”])(?:{_DOCUMENT_JA}))$",
    re.IGNORECASE,
)
_DETERMINER = re.compile(r"^(?:the|our|your|my)\s+", re.IGNORECASE)
_REFERS = re.compile(
    r"^(?:[こそあ](?:の|れ|ちら)|本(?:書|資料|文書)|当|上記|前記|th(?:is|at|ese|those)\b|it\b|they\b)|^(?:who|which|what|how)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"^[「『\"“'](?P<name>[^「」『』\"“”]+)[」』\"”']$")
_AS_FILES_ARE = re.compile(rf"\S[_＿]\S|\S\.(?:{EXTENSIONS})$|[A-Za-z]\S*-\S*\d|\d\S*-\S*[A-Za-z]", re.IGNORECASE)


_HAS_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")


def without_size(question: str) -> tuple[str, int]:
    """A question without how many lines or points its answer is to have, and how many; 0 where it does not say.

    One that then only names what is to be summed up, as 「会議の資料を3行で」, asks to have it summed up.
    """
    text = unicodedata.normalize("NFKC", question)
    if len(question) > _READ_CHARS or (match := _SIZE.search(text)) is None:
        return question, 0
    digits = next(filter(None, match.groups()))
    count = int(digits) if digits.isdecimal() else _NUMBERS_EN.index(digits.lower()) + 1
    rest = one_line(f"{text[: match.start()]}{_gap(match)}{text[match.end() :]}").strip()
    if not 0 < count <= _MOST_LINES:
        return question, 0
    return (f"{rest}まとめて" if _NAMED_ALONE.search(rest) else rest), count


@dataclass(frozen=True)
class SummaryAsked:
    """What a question calls the one document that it asks to be summed up."""

    name: str
    says_document: bool  # whether it says that it means a document, not a term
    is_quoted: bool  # whether it puts the name in quotation marks
    of_part: bool  # whether it asks for what a part of a document may be called, too, as 「の概要」

    @classmethod
    def of(cls, question: str) -> Self | None:
        """What a question asks, as far as its words tell; None where it asks for anything else."""
        text = one_line(unicodedata.normalize("NFKC", question))
        if len(question) > _READ_CHARS or len(text) > _READ_CHARS:
            return None
        text = one_line(_ADVERBS.sub(_gap, _BEGINNING.sub("", text.strip(" ?.!。、")))).strip(" ?.!。、,")
        for pattern in _ASKED:
            if match := pattern.match(_BEGINNING.sub("", text)):
                groups = match.groupdict()
                name, count = _SAID.subn("", groups["name"].strip())
                name = _DETERMINER.sub("", name.strip())
                quotation = _QUOTED.match(name)
                name = (quotation["name"] if quotation else name).strip()
                if len(name) < _LEAST_CHARS or _REFERS.search(name):
                    return None
                says_document = bool(count or groups.get("said"))
                return cls(name, says_document, quotation is not None, groups.get("part") is not None)
        return None


@dataclass(frozen=True)
class NamedDocument:
    """The document that a question names."""

    row: Mapping[str, object]  # its `document_id`, `folder`, `format`, `status`, `title` and `page_count`
    surely: bool  # whether the question gives the name of its file


def named_document(question: str, stored: StoredTables, allowed: Collection[str] | None) -> NamedDocument | None:
    """The one document that a question asks to be summed up; None where it asks anything else, or several are named so.

    Args:
        question: The question, with what it refers back to.
        stored: The stored tables.
        allowed: Documents that filters let through; None for all.

    Raises:
        StoreError: A published file is gone.
    """
    request = SummaryAsked.of(question)
    if request is None:
        return None
    rows = {
        row["document_id"]: row
        for row in stored.read(DOCUMENTS, _COLUMNS).to_pylist()
        if allowed is None or row["document_id"] in allowed
    }
    name, is_file = fold_name(request.name), _AS_FILES_ARE.search(request.name) is not None
    is_meant = is_file or request.says_document or _OF_KIND.search(request.name) is not None
    exact = [document_id for document_id, row in rows.items() if name in _names(row)]
    if len(exact) == 1 and (is_meant or request.is_quoted or _HAS_DIGIT.search(name)):
        return NamedDocument(rows[exact[0]], surely=is_file)
    if exact or not is_meant:
        return None
    terms_by_id = {
        document_id: content_terms(f"{_words(PurePath(document_id).name)} {row['title']}")
        for document_id, row in rows.items()
    }
    matches = _matching_documents(request, terms_by_id)
    if not matches:
        terms_by_id = {
            document_id: terms_by_id[document_id] | content_terms(line)
            for document_id, line in _first_lines(rows, stored)
        }
        matches = _matching_documents(request, terms_by_id)
    return NamedDocument(rows[matches[0]], surely=False) if len(matches) == 1 else None


def _gap(adverb: re.Match[str]) -> str:
    """What stands for an adverb that is left out: words of English stay apart."""
    return " " if adverb[0].isascii() else ""


def _names(row: Mapping[str, object]) -> frozenset[str]:
    """What a document is called, folded: its title, the name of its file, and that with folders above it."""
    path = PurePath(str(row["document_id"]))
    paths = ("/".join(path.parts[place:]) for place in range(len(path.parts)))
    return frozenset(fold_name(name) for name in (str(row["title"]), path.stem, *paths))


def _words(file_name: str) -> str:
    """The name of a file, and its words where they are written together, as in `ReportFY24Q1`."""
    return " ".join((file_name, *_WORD.findall(file_name)))


def _matching_documents(request: SummaryAsked, terms_by_id: Mapping[str, frozenset[str]]) -> list[str]:
    """The documents whose names hold all words of a name, or all but the word for any document in which it ends."""
    for name in (request.name, _IS_DOCUMENT.sub("", request.name)):
        words = content_words(name)
        is_kind = not content_words(_LAST_KIND.sub("", name))
        if not words or (is_kind and (request.of_part or name != request.name or not _ALONE.fullmatch(name))):
            continue
        matches = [document_id for document_id, terms in terms_by_id.items() if held_share(words, terms) >= 1]
        if matches:
            return sorted(matches)
    return []


def _first_lines(documents: Collection[str], stored: StoredTables) -> Iterable[tuple[str, str]]:
    """The lines with which documents begin, as far as they may be titles."""
    begins = (pc.field("page_number") == 1) & (pc.field("chunk_index") == 0)
    for row in stored.read(CHUNKS, ("document_id", "text"), None, begins).to_pylist():
        line = next(filter(None, map(one_line, row["text"].splitlines())), "")
        if row["document_id"] in documents and len(line) <= _TITLE_CHARS and not _NO_TITLE.search(line):
            yield row["document_id"], line
