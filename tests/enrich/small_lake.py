"""A lake of a few hand-made documents, with all tables that facets and questions are made from."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from query_data import BagOfWordsEmbedder

from rag_assets.contracts.causes import BlockKind, PageKind
from rag_assets.contracts.content import Block, Page, ParsedDocument, Row
from rag_assets.contracts.fingerprint import digest
from rag_assets.contracts.tables import BLOCKS, DOCUMENTS, FILE_SUMMARIES, PAGES
from rag_assets.enrich.facets.taxonomy import parse_taxonomy
from rag_assets.parsing.documents import update_chunks, update_documents
from rag_assets.parsing.records import block_records, document_record, page_records, page_text, rows
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings
from rag_assets.sources.listing import SourceFile
from rag_assets.store.lake import SHARDS, Lake, shard_of
from rag_assets.text.language import detect_language

SAMPLE = Path(__file__).parents[2] / "docs" / "sample"
TAXONOMY = parse_taxonomy(
    """
    [[facets]]
    name = "kind"
    label.ja = "種類"
    label.en = "Kind"
    description = "What the document is."
    required = true
    most_values = 2
    [[facets.values]]
    name = "design"
    label.ja = "設計書"
    label.en = "design"
    description = "取引 機能 処理 を定める システム機能設計書"
    terms = ["システム機能設計", "取引概要"]
    [[facets.values]]
    name = "manual"
    label.ja = "マニュアル"
    label.en = "manual"
    description = "How to use a device: scanner, printer, buttons, lamps."
    terms = ["calibrate", "setting up"]
    [[facets.values]]
    name = "invoice"
    label.ja = "請求書"
    label.en = "invoice"
    description = "請求 支払 金額 税額"
    [[facets]]
    name = "area"
    label = "Area"
    description = "Where it is used."
    [[facets.values]]
    name = "customers"
    label.ja = "顧客"
    label.en = "customers"
    description = "顧客の登録と管理"
    [[facets.values]]
    name = "offices"
    label.ja = "事務所"
    label.en = "offices"
    description = "Paper, printers and scanners."
    """,
    "test",
)


def ignore(done: int, total: int) -> None:
    """Progress that nobody watches."""


def table(header: Sequence[str], *body: Sequence[str], section: Sequence[str] = ()) -> Block:
    lines = [header, *body]
    text = "\n".join(" | ".join(cells) for cells in lines)
    return Block(BlockKind.TABLE, text, tuple(section), header_row_count=1, rows=tuple(Row(tuple(c)) for c in lines))


def labelled(*lines: Sequence[str], section: Sequence[str] = ()) -> Block:
    text = "\n".join(" | ".join(cells) for cells in lines)
    return Block(BlockKind.TABLE, text, tuple(section), rows=tuple(Row(tuple(cells)) for cells in lines))


def page(*blocks: Block, number: int = 1, name: str | None = None) -> Page:
    return Page(number, PageKind.SHEET if name else PageKind.PAGE, blocks, name)


ERRORS = page(
    Block(BlockKind.HEADING, "1. エラーコード一覧"),
    table(
        ("No.", "エラーコード", "内容", "対処"),
        ("1", "E0004", "指定された顧客は既に登録されています。", "別の顧客名で登録してください。"),
        ("2", "E0005", "業種コードがコードマスタに存在しません。", "業種コードを確認してください。"),
        ("3", "E0009", "データベースに接続できません。", "-"),
        section=("1. エラーコード一覧",),
    ),
    Block(BlockKind.HEADING, "2. 用語"),
    Block(BlockKind.PARAGRAPH, "論理削除とは、行を残したまま削除済みの印を付けることである。", ("2. 用語",)),
    Block(
        BlockKind.PARAGRAPH,
        "同じ顧客名の顧客が既に存在する場合は、登録せずに重複エラーを返す。",
        ("2. 用語",),
    ),
    number=2,
    name="エラー",
)
OVERVIEW = page(
    labelled(("取引ID", "B10103"), ("取引名", "顧客登録"), ("取引概要", "顧客のデータ1件を登録する。"), ("備考", "-")),
    name="取引概要",
)
GUIDE = page(
    Block(BlockKind.HEADING, "Setting up the scanner"),
    Block(
        BlockKind.PARAGRAPH,
        "A duplex scanner is a device that reads both sides of a sheet in one pass. "
        "If the paper tray is empty, the scanner stops and shows a red lamp. "
        "To calibrate the sensor, press both buttons for five seconds. It is small.",
        ("Setting up the scanner",),
    ),
    Block(BlockKind.HEADING, "Models"),
    table(
        ("Model", "Speed", "Warranty period"),
        ("SX-200", "20 pages per minute", "two years"),
        ("SX-450", "45 pages per minute", "five years"),
        ("SX-900", "90 pages per minute", "five years"),
        section=("Models",),
    ),
)
DOCUMENTS_BY_ID = {
    "specs/システム機能設計書_B10103_顧客登録.xlsx": [OVERVIEW, ERRORS],
    "manuals/scanner_guide.pdf": [GUIDE],
    "notes/empty.txt": [page()],
}


def store(lake: Lake, documents: Mapping[str, Sequence[Page]], titles: Mapping[str, str] | None = None) -> None:
    """Make the parsed tables hold just these documents."""
    for shard in SHARDS:
        names = [name for name in documents if shard_of(name) == shard]
        if not names and not lake.inputs(DOCUMENTS, shard):
            continue
        parsed = {name: ParsedDocument("xlsx", (titles or {}).get(name), tuple(documents[name])) for name in names}
        files = [SourceFile(name, name.partition("/")[0], name, name, 0, None, "", local=True) for name in names]
        described = [document_record(file, None, parsed[file.document_id]) for file in files]
        titled = {row["document_id"]: row["title"] for row in described}
        inputs = {name: digest(repr(documents[name]), titled[name]) for name in names}
        pages = [record for name in names for record in page_records(name, parsed[name])]
        blocks = [record for name in names for record in block_records(name, parsed[name])]
        lake.write(DOCUMENTS, shard, rows(DOCUMENTS.schema, described), inputs)
        lake.write(PAGES, shard, rows(PAGES.schema, pages), inputs)
        lake.write(BLOCKS, shard, rows(BLOCKS.schema, blocks), inputs)
        summaries = [_summary(name, titled[name], documents[name]) for name in names]
        lake.write(FILE_SUMMARIES, shard, rows(FILE_SUMMARIES.schema, summaries), inputs)
    update_chunks(lake, SHARDS, BagOfWordsEmbedder(), "words", 40, 0.0, ignore)


def _summary(document_id: str, title: str, pages: Sequence[Page]) -> dict[str, object]:
    text = f"{title} / {' '.join(' '.join(map(page_text, pages)).split())[:200]}"
    return {
        "document_id": document_id,
        "shard": shard_of(document_id),
        "language": detect_language(text),
        "method": "extractive",
        "length_chars": len(text),
        "text": text,
    }


class CharacterCounter(BagOfWordsEmbedder):
    """Takes two characters for a token."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) // 2 for text in texts]


def parsed_sample(folder: Path) -> Lake:
    """Documents, pages, blocks and passages of the sample folder, in a home of its own."""
    home = Home(load_settings(home=folder, sources=(f"sample={SAMPLE}",)))
    update_documents(home.lake, home.listing(), SHARDS, home.options.parsing, 2, ignore)
    update_chunks(home.lake, SHARDS, CharacterCounter(), "characters", 256, 0.1, ignore)
    return home.lake
