"""The closed lists of words that stored columns may hold."""

from enum import StrEnum


class FailureCause(StrEnum):
    """Why a document, or a part of it, could not be parsed (`parse_failures.cause`)."""

    UNREADABLE = "unreadable"  # the bytes could not be read (permission, input/output error)
    UNSUPPORTED_FORMAT = "unsupported_format"  # no reader for what the bytes are
    ENCRYPTED = "encrypted"  # a password is needed
    MALFORMED = "malformed"  # the file breaks its own format
    TOO_LARGE = "too_large"  # over a limit on size, entries, cells or pages
    TIMEOUT = "timeout"  # parsing took longer than the limit
    MEMORY = "memory"  # parsing needed more memory than the limit
    CRASHED = "crashed"  # the parsing process died
    NOT_CALCULATED = "not_calculated"  # formulas whose results the workbook does not hold
    NO_TEXT = "no_text"  # readable, but holds no text (an empty file, a scan without a text layer)


class DocumentStatus(StrEnum):
    """What became of a document (`documents.status`)."""

    PARSED = "parsed"
    FAILED = "failed"
    UNREADABLE = "unreadable"  # its file can no longer be read; what was read of it before stays


class PageKind(StrEnum):
    """What a page is in its file (`pages.kind`)."""

    SHEET = "sheet"
    PAGE = "page"
    SLIDE = "slide"
    SECTION = "section"  # of a long file that has no pages
    BODY = "body"  # the whole of a shorter one: text, Markdown, HTML; and of CSV and messages


class PageRole(StrEnum):
    """What a sheet, page or slide is for that holds facts about its document rather than content (`pages.role`)."""

    COVER = "cover"
    REVISION_HISTORY = "revision_history"
    CONTENTS = "contents"


class BlockKind(StrEnum):
    """What a block is on its page (`blocks.kind`)."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE = "table"
    NOTE = "note"  # comments, speaker notes, footnotes
    DIAGRAM = "diagram"  # text of drawn shapes
    HEADER = "header"  # running header or footer: kept, not searched
    CAPTION = "caption"


class SummaryFormat(StrEnum):
    """Which summary a row of the serving table `summaries` is (`summaries.content_format`)."""

    FILE = "file_summary"
    PAGE = "page_summary"
