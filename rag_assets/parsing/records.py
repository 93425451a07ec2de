"""Parsed documents as rows of the stored tables, and back; what of those stored was not read."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from rag_assets.contracts.causes import BlockKind, DocumentStatus, PageKind, PageRole
from rag_assets.contracts.content import Block, Formula, Page, ParsedDocument, Row, page_id_of
from rag_assets.contracts.tables import BLOCKS, DOCUMENTS, PAGES, PARSE_FAILURES, Table
from rag_assets.parsing.chunking import Chunk
from rag_assets.sources.listing import SourceFile
from rag_assets.store.lake import Lake, shard_of
from rag_assets.text.language import detect_language

Record = dict[str, Any]
_LANGUAGE_CHARS = 20_000  # of a document that its main language is told from


def document_record(file: SourceFile, content_sha256: str | None, parsed: ParsedDocument) -> Record:
    """Row of `documents`."""
    texts = [page_text(page) for page in parsed.pages]
    is_failed = any(failure.page_number is None for failure in parsed.failures)
    incomplete_pages = {failure.page_number for failure in parsed.failures if failure.page_number is not None}
    read_pages = {page.number for page, text in zip(parsed.pages, texts, strict=True) if text.strip()}
    return {
        **file_facts(file, content_sha256),
        "format": parsed.format,
        "status": DocumentStatus.FAILED if is_failed else DocumentStatus.PARSED,
        "title": parsed.title or PurePosixPath(file.document_id).stem,
        "language": detect_language("\n".join(texts)[:_LANGUAGE_CHARS]),
        "page_count": len(parsed.pages),
        "unread_page_count": len(incomplete_pages - read_pages),
        "partly_read_page_count": len(incomplete_pages & read_pages),
        "length_chars": sum(map(len, texts)),
    }


def document_titles(document_id: str, title: str) -> list[str]:
    """Names of a document: its stated title and its file name without extension."""
    return [PurePosixPath(document_id).stem, title]


def file_facts(file: SourceFile, content_sha256: str | None) -> Record:
    """Columns of `documents` that come from the listing."""
    path = PurePosixPath(file.document_id)
    return {
        "document_id": file.document_id,
        "shard": shard_of(file.document_id),
        "source_name": file.source_name,
        "uri": file.uri,
        "folder": str(path.parent),
        "file_name": path.name,
        "content_sha256": content_sha256,
        "size_bytes": file.size_bytes,
        "modified_at": file.modified_at,
        "fingerprint": file.fingerprint,
    }


def page_records(document_id: str, parsed: ParsedDocument) -> list[Record]:
    """Rows of `pages`."""
    records = []
    for page in parsed.pages:
        text = page_text(page)
        width, height = page.size or (None, None)
        record = {
            **_place(document_id, page),
            "page_name": page.name,
            "kind": page.kind,
            "hidden": page.hidden,
            "role": page.role,
            "ocr_confidence": page.ocr_confidence,
            "language": detect_language(text),
            "width_points": width,
            "height_points": height,
            "length_chars": len(text),
            "text": text,
        }
        records.append(record)
    return records


def _place(document_id: str, page: Page) -> Record:
    """Columns that say which page a row belongs to."""
    return {
        "page_id": page_id_of(document_id, page.number),
        "document_id": document_id,
        "shard": shard_of(document_id),
        "page_number": page.number,
    }


def block_records(document_id: str, parsed: ParsedDocument) -> list[Record]:
    """Rows of `blocks`."""
    return [
        {
            **place,
            "block_id": f"{place['page_id']}.b{index}",
            "block_index": index,
            "kind": block.kind,
            "text": block.text,
            "section": block.section,
            "cell_range": block.cell_range,
            "box": block.box,
            "header_row_count": block.header_row_count,
            "rows": [{"cells": row.cells, "cell_range": row.cell_range, "box": row.box} for row in block.rows],
            "formulas": [{"cell": formula.cell, "formula": formula.formula} for formula in block.formulas],
        }
        for page in parsed.pages
        for place in [_place(document_id, page)]
        for index, block in enumerate(page.blocks)
    ]


def failure_records(document_id: str, parsed: ParsedDocument) -> list[Record]:
    """Rows of `parse_failures`."""
    return [
        {
            "document_id": document_id,
            "shard": shard_of(document_id),
            "failure_index": index,
            **asdict(failure),
        }
        for index, failure in enumerate(parsed.failures)
    ]


def chunk_records(document_id: str, page: Page, chunks: Iterable[Chunk]) -> list[Record]:
    """Rows of `chunks`."""
    place = _place(document_id, page)
    return [
        {
            **place,
            "chunk_id": f"{place['page_id']}.{chunk.index}",
            "page_name": page.name,
            "heading": chunk.heading,
            "chunk_index": chunk.index,
            "context": chunk.context,
            "text": chunk.text,
            "language": chunk.language,
            "cell_range": chunk.cell_range,
            "box": chunk.box,
            "block_indexes": chunk.block_indexes,
            "length_tokens": chunk.length_tokens,
        }
        for chunk in chunks
    ]


def rows(schema: pa.Schema, records: Sequence[Record]) -> pa.Table:
    """Records as a table of a schema; characters that UTF-8 cannot hold become `?`."""
    return pa.Table.from_pylist([_encodable(record) for record in records], schema=schema)


def parsed_records(document_id: str, parsed: ParsedDocument) -> dict[str, list[Record]]:
    """Rows of `pages`, `blocks` and `parse_failures`, by table name."""
    return {
        PAGES.name: page_records(document_id, parsed),
        BLOCKS.name: block_records(document_id, parsed),
        PARSE_FAILURES.name: failure_records(document_id, parsed),
    }


def page_text(page: Page) -> str:
    """Text of a page in reading order."""
    return "\n".join(block.text for block in page.blocks if block.text)


def load_pages(lake: Lake, shard: str, documents: Sequence[str]) -> dict[str, tuple[str, list[Page]]]:
    """Stored pages with their blocks.

    Returns:
        Title and pages in order, by `document_id`; a document that is not stored is left out.
    """
    import pyarrow.compute as pc

    document_ids = pa.array(documents, pa.string())

    def read(table: Table, columns: Sequence[str] | None = None) -> list[Record]:
        stored_rows = lake.read(table, [shard], columns)
        records: list[Record] = stored_rows.filter(pc.is_in(stored_rows["document_id"], document_ids)).to_pylist()
        return records

    blocks: dict[tuple[str, int], list[Block]] = {}
    for record in read(BLOCKS):
        blocks.setdefault((record["document_id"], record["page_number"]), []).append(_block(record))
    columns = ["document_id", "page_number", "page_name", "kind", "hidden", "role", "width_points", "height_points"]
    titles = read(DOCUMENTS, ["document_id", "title"])
    loaded_pages = {record["document_id"]: (record["title"], list[Page]()) for record in titles}
    for record in read(PAGES, columns):
        size = None if record["width_points"] is None else (record["width_points"], record["height_points"])
        name, number = record["document_id"], record["page_number"]
        page = Page(
            number,
            PageKind(record["kind"]),
            tuple(blocks.get((name, number), ())),
            record["page_name"],
            record["hidden"],
            size,
            None if record["role"] is None else PageRole(record["role"]),
        )
        loaded_pages[name][1].append(page)
    return loaded_pages


def _block(record: Record) -> Block:
    return Block(
        kind=BlockKind(record["kind"]),
        text=record["text"],
        section=tuple(record["section"]),
        cell_range=record["cell_range"],
        box=None if record["box"] is None else tuple(record["box"]),
        header_row_count=record["header_row_count"],
        rows=tuple(
            Row(tuple(row["cells"]), row["cell_range"], None if row["box"] is None else tuple(row["box"]))
            for row in record["rows"]
        ),
        formulas=tuple(Formula(item["cell"], item["formula"]) for item in record["formulas"]),
    )


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return str(value).encode("utf-8", "replace").decode("utf-8")
        case list() | tuple():
            return [_encodable(item) for item in value]
        case dict():
            return {key: _encodable(item) for key, item in value.items()}
        case _:
            return value


@dataclass(frozen=True)
class IncompleteDocument:
    """A document of which pages, or parts of pages, were not read."""

    document_id: str
    page_count: int
    unread_page_count: int  # pages of which nothing was read
    partly_read_page_count: int  # pages of which a part was not read
    causes: tuple[str, ...]  # why, each cause once

    @property
    def unread_share(self) -> float:
        """Share of its pages that are unread, 0 to 1."""
        return min(1.0, self.unread_page_count / max(1, self.page_count))

    def __str__(self) -> str:
        """The document with what is not read of it, as in `a.pdf: 2 of 3 pages unread (67 %): no_text`."""
        unread_pages = f"{self.unread_page_count} of {self.page_count} pages unread ({self.unread_share:.0%})"
        partly_read_pages = f"{self.partly_read_page_count} of {self.page_count} pages read in part"
        counts = (
            unread_pages if self.unread_page_count else "",
            partly_read_pages if self.partly_read_page_count else "",
        )
        return f"{self.document_id}: {', '.join(filter(None, counts))}: {', '.join(self.causes)}"


def incomplete_documents(lake: Lake) -> list[IncompleteDocument]:
    """Stored documents with pages that were not read, or not in full, most of them unread first."""
    causes: dict[str, set[str]] = {}
    for row in lake.read(PARSE_FAILURES, columns=["document_id", "page_number", "cause"]).to_pylist():
        if row["page_number"] is not None:
            causes.setdefault(row["document_id"], set()).add(row["cause"])
    columns = ["document_id", "page_count", "unread_page_count", "partly_read_page_count"]
    documents = [
        IncompleteDocument(**row, causes=tuple(sorted(causes[row["document_id"]])))
        for row in lake.read(DOCUMENTS, columns=columns).to_pylist()
        if row["document_id"] in causes
    ]
    return sorted(documents, key=lambda document: (-document.unread_share, document.document_id))


def document_failures(lake: Lake) -> list[dict[str, object]]:
    """Failures of whole documents in order of id, each with the `status` of its document."""
    columns = ["document_id", "page_number", "cause", "message"]
    rows: list[dict[str, object]] = lake.read(PARSE_FAILURES, columns=columns).to_pylist()
    documents = lake.read(DOCUMENTS, columns=["document_id", "status"]).to_pydict()
    status = dict(zip(documents["document_id"], documents["status"], strict=True))
    document_rows = (row for row in rows if row["page_number"] is None)
    failures = [{**row, "status": status.get(row["document_id"], DocumentStatus.FAILED)} for row in document_rows]
    return sorted(failures, key=lambda row: row["document_id"])
