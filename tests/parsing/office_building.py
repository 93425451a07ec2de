"""Office files and other archives built in memory, and what is read of them."""

import zipfile
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from typing import Any

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block, ParsedDocument
from rag_assets.parsing.office.word import parse_docx

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def saved(document: Any) -> bytes:
    """A document of openpyxl, python-docx or python-pptx as a file."""
    buffer = BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def zipped(parts: Mapping[str, str | bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of some parts."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def parts_of(data: bytes) -> dict[str, bytes]:
    """The parts of an archive."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def with_parts(data: bytes, parts: Mapping[str, str | bytes]) -> bytes:
    """The same archive with parts added or replaced."""
    return zipped({**parts_of(data), **parts}, zipfile.ZIP_DEFLATED)


def relations(*entries: tuple[str, str, str]) -> str:
    """The part that says what another one refers to: ids, kinds and targets."""
    listed = (
        f'<Relationship Id="{identity}" Type="{RELATIONSHIPS}/{kind}" Target="{target}"/>'
        for identity, kind, target in entries
    )
    namespace = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<Relationships xmlns="{namespace}">{"".join(listed)}</Relationships>'


def read_docx(build: Callable[[Any], None]) -> ParsedDocument:
    """What is read of a new document of python-docx."""
    import docx

    document = docx.Document()
    build(document)
    return parse_docx(saved(document), 1000, 1 << 26)


def shown(blocks: Iterable[Block]) -> list[tuple[BlockKind, str]]:
    """Kinds and texts of blocks."""
    return [(block.kind, block.text) for block in blocks]
