"""Formats of files that are read: what each is called, how a file of it is parted, and what reads it.

What stays out: signatures in the bytes (`rag_assets.parsing.detect`) and the readers (`rag_assets.parsing.parse`).
"""

import re
from dataclasses import dataclass
from enum import Enum, Flag, StrEnum, auto


class Pages(Enum):
    """How a file is parted, and so how a place in it is cited."""

    SHEETS = auto()
    SLIDES = auto()
    NUMBERED = auto()
    BREAKS = auto()  # where the file breaks its pages; without breaks it is divided into sections where it is long
    SECTIONS = auto()  # of a long file
    WHOLE = auto()  # tables and messages, however long they are


class Reader(Flag):
    """What can read a format."""

    BUILT_IN = auto()
    UNSTRUCTURED = auto()  # the extra
    BOTH = BUILT_IN | UNSTRUCTURED


class DocumentFormat(StrEnum):
    """The formats, by their names in `documents.format`.

    Attributes:
        pages: How a file is parted.
        reader: What can read it; the built-in reader does where both can and no setting says otherwise.
        extensions: Those of its files, without the dot; the first is its name.
        is_text: Whether it is a text whose bytes do not tell the format, so that the extension decides.
    """

    pages: Pages
    reader: Reader
    extensions: tuple[str, ...]
    is_text: bool

    def __new__(
        cls,
        name: str,
        pages: Pages = Pages.SECTIONS,
        reader: Reader = Reader.BUILT_IN,
        other_extensions: tuple[str, ...] = (),
        is_text: bool = False,
    ) -> "DocumentFormat":
        member = str.__new__(cls, name)
        member._value_ = name
        member.pages, member.reader, member.is_text = pages, reader, is_text
        member.extensions = (name, *other_extensions)
        return member

    XLSX = "xlsx", Pages.SHEETS, Reader.BOTH, ("xltx", "xltm")
    XLSM = "xlsm", Pages.SHEETS, Reader.BUILT_IN
    XLSB = "xlsb", Pages.SHEETS, Reader.BUILT_IN
    XLS = "xls", Pages.SHEETS, Reader.BOTH, ("xlt",)
    ODS = "ods", Pages.SHEETS, Reader.BUILT_IN
    DOCX = "docx", Pages.BREAKS, Reader.BOTH, ("docm", "dotx", "dotm")
    PPTX = "pptx", Pages.SLIDES, Reader.BOTH, ("pptm", "ppsx", "ppsm", "potx")
    PDF = "pdf", Pages.NUMBERED, Reader.BOTH
    EML = "eml", Pages.WHOLE, Reader.BOTH
    MSG = "msg", Pages.WHOLE, Reader.BOTH
    HTML = "html", Pages.SECTIONS, Reader.BOTH, ("htm", "xhtml"), True
    MD = "md", Pages.SECTIONS, Reader.BOTH, ("markdown",), True
    CSV = "csv", Pages.WHOLE, Reader.BOTH, (), True
    TSV = "tsv", Pages.WHOLE, Reader.BOTH, ("tab",), True
    TXT = "txt", Pages.SECTIONS, Reader.BOTH, ("text", "log"), True
    DOC = "doc", Pages.BREAKS, Reader.UNSTRUCTURED
    PPT = "ppt", Pages.SLIDES, Reader.UNSTRUCTURED
    ODP = "odp", Pages.SLIDES, Reader.UNSTRUCTURED
    ODT = "odt", Pages.SECTIONS, Reader.UNSTRUCTURED
    RTF = "rtf", Pages.SECTIONS, Reader.UNSTRUCTURED
    EPUB = "epub", Pages.SECTIONS, Reader.UNSTRUCTURED
    ORG = "org", Pages.SECTIONS, Reader.UNSTRUCTURED, (), True
    RST = "rst", Pages.SECTIONS, Reader.UNSTRUCTURED, (), True
    XML = "xml", Pages.SECTIONS, Reader.UNSTRUCTURED, (), True


EXTENSIONS = "|".join(  # as a pattern
    sorted(extension for document_format in DocumentFormat for extension in document_format.extensions)
)
UNSTRUCTURED_ONLY = tuple(
    sorted(document_format.value for document_format in DocumentFormat if document_format.reader is Reader.UNSTRUCTURED)
)


@dataclass(frozen=True)
class Family:
    """Formats that people call by one name."""

    name: str
    words: str  # a pattern of what questions call them, in English and Japanese; case does not count
    formats: tuple[DocumentFormat, ...]

    def named_in(self, text: str) -> bool:
        """Whether a text names them."""
        return re.search(self.words, text, re.IGNORECASE) is not None


def _word(pattern: str) -> str:
    """A pattern of a word in Latin letters, which may stand beside Japanese ones."""
    return f"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])"


FAMILIES = (
    Family("pdf", _word("pdfs?"), (DocumentFormat.PDF,)),
    Family(
        "excel",
        _word("excel|xlsx?|workbooks?|spreadsheets?") + "|エクセル",
        tuple(document_format for document_format in DocumentFormat if document_format.pages is Pages.SHEETS),
    ),
    Family("word", _word("word|docx") + "|ワード(?:文書|ファイル)", (DocumentFormat.DOCX, DocumentFormat.DOC)),
    Family(
        "powerpoint",
        _word("powerpoint|pptx?|slides?") + "|パワーポイント|パワポ|スライド",
        tuple(document_format for document_format in DocumentFormat if document_format.pages is Pages.SLIDES),
    ),
    Family("markdown", _word("markdown") + "|マークダウン", (DocumentFormat.MD,)),
    Family("csv", _word("csv"), (DocumentFormat.CSV, DocumentFormat.TSV)),
    Family("html", _word("html?"), (DocumentFormat.HTML,)),
    Family("mail", _word("e?mails?") + "|メール", (DocumentFormat.EML, DocumentFormat.MSG)),
    Family("text", _word("text files?") + "|テキスト(?:文書|ファイル)", (DocumentFormat.TXT, DocumentFormat.MD)),
)


def formats_called(name: str) -> tuple[DocumentFormat, ...]:
    """Formats that people may mean by a name or an extension, as in `excel`, `エクセル` or `htm`; in lower case."""
    families = [family for family in FAMILIES if name == family.name or re.fullmatch(family.words, name)]
    by_extension = [document_format for document_format in DocumentFormat if name in document_format.extensions]
    return tuple(
        dict.fromkeys([*by_extension, *(document_format for family in families for document_format in family.formats)])
    )
