"""Sheets that tell about a document instead of being its content: covers, revision histories, tables of contents.

Such sheets repeat names and dates of all documents of a project. They are kept and searched; the mark lets a search or
an extraction of facts leave them out. Told from the name of the sheet, or from the title and the columns on it.
"""

import re
import unicodedata
from collections.abc import Sequence

from rag_assets.contracts.causes import BlockKind, PageRole
from rag_assets.contracts.content import Block

_NAMES = (
    (PageRole.COVER, re.compile(r"表紙|cover(page|sheet)?|titlepage")),
    (
        PageRole.REVISION_HISTORY,
        re.compile(
            r"(文書|資料)?(変更|改訂|改定|更新|改版|修正)(履歴|来歴|記録)(表|一覧)?"
            r"|(revision|change|version)(history|log|record)s?|revisions|changelog"
        ),
    ),
    (PageRole.CONTENTS, re.compile(r"目次|contents|tableofcontents")),
)
_REVISION_COLUMNS = (
    re.compile(r"版数?|バージョン|ver(sion|\.)?|no\.?|rev(ision|\.)?|改訂番号"),
    re.compile(r"(変更|改訂|改定|更新|作成|修正)?(年月)?日付?|date"),
    re.compile(r"(変更|改訂|改定|更新|修正)?(内容|箇所|区分|理由).*|description|changes?|summary"),
)
_LONG_BLOCKS = 40


def sheet_role(name: str, blocks: Sequence[Block]) -> PageRole | None:
    """What a sheet is for, or None where it is content.

    Args:
        name: Name of the sheet.
        blocks: Its blocks in reading order.
    """
    role = _named(name)
    if role is not None:
        return role
    if len(blocks) > _LONG_BLOCKS:
        return None
    title = next((block.text for block in blocks if block.kind in {BlockKind.HEADING, BlockKind.PARAGRAPH}), "")
    if _named(title) is PageRole.REVISION_HISTORY and any(_lists_revisions(block) for block in blocks):
        return PageRole.REVISION_HISTORY
    return None


def _named(text: str) -> PageRole | None:
    plain = re.sub(r"[\s■□●◆【】<>()]|^[\d.]+", "", unicodedata.normalize("NFKC", text)).lower()
    return next((role for role, pattern in _NAMES if pattern.fullmatch(plain)), None)


def _lists_revisions(block: Block) -> bool:
    """Whether a table has columns for version, date and change."""
    cells = ["".join(cell.split()).lower() for row in block.rows[: block.header_row_count] for cell in row.cells]
    return all(any(pattern.fullmatch(cell) for cell in cells) for pattern in _REVISION_COLUMNS)
