"""What documents say they are for: the sentence under 目的, 概要 or "Purpose", or one that begins with 本書は.

What stays out: of which documents, and what else is told of them (`rag_assets.query.ask.overviews.overview`).
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import pyarrow.compute as pc

from rag_assets.contracts.tables import CHUNKS
from rag_assets.query.ask.quoted.statements import Statement, StatementKind, statements
from rag_assets.query.stored import StoredTables

_PAGES = 4  # of a document, the first ones
_PASSAGES = 40  # of each of them
_LEAST_CHARS, _MOST_CHARS = 14, 220
_OF_JA = (
    "書|資料|文書|ドキュメント|システム|サービス|製品|ガイド(?:ブック|ライン)?|マニュアル|標準|規程|規約|仕様書?|設計書|手順書|アプリ\\w*|ツール"
    "|プロジェクト|業務"
)
_OF_EN = "(?:document|guide|manual|report|specification|system|project|application|service|tool|book|paper|standard)"
_THIS = rf"(?:本|この|当該?)(?:{_OF_JA})|\b(?:this|the) (?:[\w/()'-]+ ){{0,5}}?{_OF_EN}\b"
_UNDER = "目的|概要|はじめに|まえがき|位置[付づ]け|趣旨|背景|本書について|とは"
_UNDER_EN = r"\b(?:purpose|introduction|overview|about|abstract|scope)\b"
_LEAST = 2.8  # from which a sentence says what something is for
_DOCUMENTS = 100  # that are read, at most
_BESIDE = re.compile(r"別紙|付録|付表|別添|補足|サンプル|様式|\bold|appendix|annex|sample|template", re.IGNORECASE)
_HINT = re.compile(f"{_UNDER}|{_UNDER_EN}|{_THIS}", re.IGNORECASE)  # passages without it are not read
_HEADING = re.compile(rf"(?:{_UNDER})[\s\]〕】）)]*$|{_UNDER_EN}[\s\w]{{0,24}}$", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:(?:システム|サービス|製品|業務|取引|機能|処理|本書の|文書の)?(?:目的|概要)(?:・概要)?|purpose|overview)\W*",
    re.IGNORECASE,
)
_COLUMN = re.compile(r"(?:(?:システム|サービス|製品)?目的|(?:システム|サービス|製品)概要|purpose)\W*", re.IGNORECASE)
_DOES_EN = (
    r"\b(?:is|are|describes?|defines?|provides?|explains?|contains?|covers?|presents?|specif\w+|outlines?|gives?)\b"
)
_SELF = re.compile(
    rf"^\W*(?:本|この|当該?)(?:{_OF_JA})(?:は|では|の目的)"
    rf"|^\W*(?:this|the) (?:[\w/()'-]+ ){{0,5}}?{_OF_EN}\b.{{0,60}}?{_DOES_EN}|^\W*the purpose of\b",
    re.IGNORECASE,
)
_OF_SYSTEM = re.compile(
    r"^\W*(?:本|この|当該?)(?:システム|サービス|製品|アプリ\w*|ツール|プロジェクト)(?:は|では|の目的)"
    r"|^\W*(?:this|the) (?:[\w/()'-]+ ){0,5}?(?:system|project|application|service|tool)\b",
    re.IGNORECASE,
)
_FOR = re.compile(r"について|ため[のに]|目的|\bto\b|\bfor\b", re.IGNORECASE)
_SAYS_WHAT = re.compile(
    r"(?:プラットフォーム|システム|サービス|ガイド(?:ブック|ライン)?|マニュアル|資料|文書|標準|規約|規程|仕様|ツール|アプリ\w*|基盤|製品|もの)(?:である|です|だ|を提供する|を提供します|になります)?。$"
    r"|(?:目的とする|目的とします|ことを目的|ためのもの|示したもの|示すもの|記述したもの|定めるもの|規定する|解説する|記載する|説明する)\w*。$"
    r"|\b(?:is|are) (?:a|an|the) \w",
)
_TELLING = re.compile(
    r"要件|概要|紹介|基本設計|はじめに|readme|仕様|ガイド|手引|説明書|マニュアル|overview|introduction|guide|manual|requirement|description|specification",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"^[\W〇○]*(?:また|なお|一方|ただし|さらに|そのため|しかし|この(?:ため|場合|とき)|これ|それ|その)"
    r"|^\W*(?:also|however|in addition|it|in the|these|for example)\b"
    r"|^\W*※|[（(]注|記入|(?:一覧|表|図)[^。]{0,12}(?:記載|示す)|以下の(?:通り|とおり)|参照(?:すること|のこと|されたい|)?。$|ください|変更履歴|改[版訂]"
    r"|\b(?:see|refer|please|click|select|table|figure)\b|[|{}<>`\[\]]|\*\*|://|www\.|\.{4}",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Purpose:
    """What a document says it is for."""

    document_id: str
    text: str  # the sentence, as it stands in a passage
    score: float  # how much it looks like one
    of_system: bool  # whether it says so of a system or product, and not of a document or a part


def purposes(groups: Sequence[Collection[str]], stored: StoredTables) -> dict[str, Purpose]:
    """The sentence of each document that says what it, or what it tells of, is for; of many there is none.

    Args:
        groups: Ids of the documents of each group, of which those are read first whose names promise to say it.
        stored: The stored tables.

    Raises:
        StoreError: A published file is gone.
    """
    most = max(1, _DOCUMENTS // max(1, len(groups)))
    documents = {document for group in groups for document in sorted(group, key=_promises)[:most]}
    columns = ["document_id", "page_number", "text"]
    first = (pc.field("page_number") <= _PAGES) & (pc.field("chunk_index") < _PASSAGES)
    best_purposes: dict[str, Purpose] = {}
    for row in stored.read(CHUNKS, columns, documents, first).to_pylist():
        if not _HINT.search(row["text"]):
            continue
        for statement in statements(row["text"]):
            purpose = _purpose(statement, row["document_id"], row["page_number"])
            best = best_purposes.get(row["document_id"])
            if purpose is not None and (best is None or purpose.score > best.score):
                best_purposes[row["document_id"]] = purpose
    return best_purposes


def _promises(document: str) -> tuple[bool, bool, str]:
    name = PurePath(document).name
    return _BESIDE.search(name) is not None, _TELLING.search(name) is None, document


def _purpose(statement: Statement, document: str, page: int) -> Purpose | None:
    """What a statement says of a purpose: a sentence, or the value under such a label."""
    label, text = _label(statement)
    if not _LEAST_CHARS <= len(text) <= _MOST_CHARS or _NOT.search(text) or not re.search(r"[。．.]$", text):
        return None
    name, says_what = PurePath(document).name, bool(_SAYS_WHAT.search(text))
    under, system = bool(label) or bool(_HEADING.search(statement.context)), bool(_OF_SYSTEM.search(text))
    itself = bool(_SELF.search(text))
    if not label and not says_what and not (itself and (under or not system)) and not (under and _FOR.search(text)):
        return None
    if not under and not itself:
        return None
    of_system = bool(_COLUMN.fullmatch(label)) or system
    score = 2.0 * under + 0.5 * bool(label) + 2.0 * itself + 1.5 * says_what
    score += 0.5 * bool(_TELLING.search(name)) - 1.5 * bool(_BESIDE.search(name))
    score += (3.0 if label or says_what else 1.0) * of_system + 1 - 0.25 * (page - 1) - 0.002 * len(text)
    return Purpose(document, text, score, of_system) if score >= _LEAST else None


def _label(statement: Statement) -> tuple[str, str]:
    """The label of a purpose and what stands under it; no label and the sentence; or nothing."""
    cells = statement.cells
    if statement.kind is StatementKind.SENTENCE:
        return "", statement.text
    if statement.kind is StatementKind.ROW and len(cells) == 2 and not cells[0][0] and _LABEL.fullmatch(cells[0][1]):
        return cells[0][1], cells[1][1]
    if statement.kind is StatementKind.ROW:
        return next((cell for cell in cells if cell[0] and _COLUMN.fullmatch(cell[0])), ("", ""))
    return "", ""
