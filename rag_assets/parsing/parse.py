"""From the bytes of one file to its pages: the choice of the reader, and failures as values.

A reader takes the bytes and limits as numbers, texts by `plain.text.decode_text`. What becomes of its pages is decided
here: long ones are divided, and too many are refused.
"""

import hashlib
import importlib.metadata
import logging
import re
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePath

from rag_assets.contracts.causes import FailureCause, PageKind
from rag_assets.contracts.content import Failure, ParsedDocument
from rag_assets.contracts.errors import ParseError
from rag_assets.contracts.fingerprint import installed_version
from rag_assets.contracts.formats import UNSTRUCTURED_ONLY, DocumentFormat, Pages
from rag_assets.parsing.detect import Detection, detect_format
from rag_assets.parsing.limits import ParsingLimits, limited
from rag_assets.parsing.sections import divided
from rag_assets.text.folding import content_words, shares_held
from rag_assets.text.plain import one_line

logger = logging.getLogger(__name__)

_MESSAGE_CHARS = 300
# Text formats that have no reader of their own, told by the extension where Unstructured reads them.
_TEXT_EXTENSIONS = {f".{name}": name for name in UNSTRUCTURED_ONLY if DocumentFormat(name).is_text}


def parse_bytes(
    data: bytes,
    file_name: str,
    limits: ParsingLimits,
    passwords: Sequence[str] = (),
    announce: Callable[[int], None] | None = None,
) -> ParsedDocument:
    """Parse one file.

    Args:
        data: All bytes of the file.
        file_name: Its name; see `detect_format` for what the extension is used for.
        limits: Limits on the file; time and memory are watched by `pool.parse_files` alone.
        passwords: Tried in order on an encrypted file.
        announce: Told the number of pages that need text recognition, before it begins: the file may then take
            `limits.seconds` of that number.

    Returns:
        Pages and failures. A file that cannot be parsed gives no pages and one failure; nothing is raised for it.
    """
    detection = _detect(data, file_name, limits)
    try:
        with limited(limits):
            data = _plain_bytes(data, detection, limits, passwords)
            document = _read(data, detection, limits, passwords, announce)
    except ParseError as error:
        return failed(detection.name, error.cause, one_line(error, _MESSAGE_CHARS))
    except MemoryError:
        return failed(detection.name, FailureCause.MEMORY, "memory ran out")
    except Exception as error:  # third-party parsers raise anything on damaged files; it becomes a row
        traceback_id = uuid.uuid4().hex[:12]
        logger.warning("%s: parsing failed, traceback %s", file_name, traceback_id, exc_info=error)
        message = one_line(f"the parser failed with {type(error).__name__}: {error}", _MESSAGE_CHARS)
        return failed(detection.name, FailureCause.MALFORMED, message, traceback_id)
    pages = document.pages
    is_whole = detection.format is not None and detection.format.pages is Pages.WHOLE
    if len(pages) == 1 and pages[0].kind is PageKind.BODY and not is_whole:
        pages = divided(pages[0])
    title = document.title if _is_own_title(document, file_name) else None
    failures = (*nothing_read(document), *document.failures)
    return replace(document, format=detection.name, title=title, pages=pages, failures=failures)


def _is_own_title(document: ParsedDocument, file_name: str) -> bool:
    """Whether a word of the title stands in the text or the name of the file, as far as any was read: the properties of
    a file that was made from another one often hold the title of that.
    """
    words = content_words(document.title or "")
    text = "\n".join(block.text for page in document.pages for block in page.blocks)
    return not words or not text.strip() or any(shares_held(words, f"{file_name}\n{text}"))


def failed(name: str, cause: FailureCause, message: str, traceback_id: str | None = None) -> ParsedDocument:
    """A document of which nothing can be read, by the name of its format."""
    return ParsedDocument(name, failures=(Failure(cause, message, traceback_id=traceback_id),))


def nothing_read(document: ParsedDocument) -> tuple[Failure, ...]:
    """The failure of a document of which nothing was read, though some of its pages may say why by themselves."""
    if any(block.text.strip() for page in document.pages for block in page.blocks):
        return ()
    if not document.failures:
        return (Failure(FailureCause.NO_TEXT, "the file holds no text"),)
    if any(failure.page_number is None for failure in document.failures):
        return ()
    [(cause, _)] = Counter(failure.cause for failure in document.failures).most_common(1)
    first = next(failure for failure in document.failures if failure.cause is cause)
    count = len(document.pages)
    pages = f"{count} pages" if count > 1 else "the only page"
    return (Failure(cause, one_line(f"nothing was read of {pages}: {first.message}", _MESSAGE_CHARS)),)


def _detect(data: bytes, file_name: str, limits: ParsingLimits) -> Detection:
    """As `detect_format`; a text that Unstructured is to read has the name of its format, and that of plain text."""
    detection = detect_format(data, file_name)
    name = _TEXT_EXTENSIONS.get(PurePath(file_name).suffix.lower(), "")
    if detection.format is not DocumentFormat.TXT or not name:
        return detection
    from rag_assets.parsing.unstructured import is_readable

    is_chosen = name in limits.unstructured_formats or (limits.unstructured and is_readable(name))
    return Detection(name, DocumentFormat.TXT) if is_chosen else detection


def _read(
    data: bytes,
    detection: Detection,
    limits: ParsingLimits,
    passwords: Sequence[str],
    announce: Callable[[int], None] | None,
) -> ParsedDocument:
    """A file by its reader, or by Unstructured.

    Raises:
        ParseError: UNSUPPORTED_FORMAT where nothing reads it; TOO_LARGE where it has too many pages; else as its
            reader raises.
    """
    name = detection.name
    if name in limits.unstructured_formats or (name in UNSTRUCTURED_ONLY and limits.unstructured):
        from rag_assets.parsing.unstructured import parse_by_unstructured

        try:
            return parse_by_unstructured(data, name)
        except ParseError as error:
            if detection.format is None or name in limits.unstructured_formats:
                raise
            logger.warning("%s is read as plain text: %s", name, error)
    document = _dispatch(data, detection, limits, passwords, announce)
    if len(document.pages) > limits.pages:  # of a reader that knows them only once all is read
        raise ParseError(FailureCause.TOO_LARGE, f"{len(document.pages)} pages, limit {limits.pages}")
    return document


def _dispatch(
    data: bytes,
    detection: Detection,
    limits: ParsingLimits,
    passwords: Sequence[str],
    announce: Callable[[int], None] | None,
) -> ParsedDocument:
    match detection.format:
        case DocumentFormat.XLSX | DocumentFormat.XLSM | DocumentFormat.XLSB | DocumentFormat.XLS | DocumentFormat.ODS:
            from rag_assets.parsing.excel.reader import parse_excel

            return parse_excel(data, limits, passwords)
        case DocumentFormat.PDF:
            from rag_assets.parsing.ocr import OcrTime
            from rag_assets.parsing.pdf.reader import parse_pdf

            return parse_pdf(data, limits.pages, passwords, OcrTime(limits, announce))
        case DocumentFormat.DOCX:
            from rag_assets.parsing.office.word import parse_docx

            return parse_docx(data, limits.archive_entries, limits.expanded_bytes)
        case DocumentFormat.PPTX:
            from rag_assets.parsing.office.slides import parse_pptx

            return parse_pptx(data, limits.archive_entries, limits.expanded_bytes, limits.pages)
        case DocumentFormat.EML | DocumentFormat.MSG:
            from rag_assets.parsing.mail import parse_message

            return parse_message(data, detection.format)
        case DocumentFormat.HTML | DocumentFormat.MD:
            from rag_assets.parsing.markup.markdown import parse_markdown
            from rag_assets.parsing.markup.reader import parse_html

            return parse_html(data) if detection.format is DocumentFormat.HTML else parse_markdown(data)
        case DocumentFormat.CSV | DocumentFormat.TSV:
            from rag_assets.parsing.plain.delimited import parse_delimited

            return parse_delimited(data, detection.format, limits.cells)
        case DocumentFormat.TXT:
            from rag_assets.parsing.plain.text import parse_text

            return parse_text(data)
        case _:
            setting = "; parsing.unstructured is off" if detection.name in UNSTRUCTURED_ONLY else ""
            message = f"no reader for this file: it is {detection.description or detection.name}{setting}"
            raise ParseError(FailureCause.UNSUPPORTED_FORMAT, message)


def _plain_bytes(data: bytes, detection: Detection, limits: ParsingLimits, passwords: Sequence[str]) -> bytes:
    """The bytes to parse, decrypted where they are an encrypted package.

    Raises:
        ParseError: TOO_LARGE, NO_TEXT or ENCRYPTED.
    """
    if len(data) > limits.file_bytes:
        raise ParseError(FailureCause.TOO_LARGE, f"{len(data)} bytes, limit {limits.file_bytes}")
    if not data:
        raise ParseError(FailureCause.NO_TEXT, "the file is empty")
    if detection.encrypted:
        from rag_assets.parsing.archive import decrypt_package

        data = decrypt_package(data, f"{detection.name} file", passwords)
        if len(data) > limits.file_bytes:
            raise ParseError(FailureCause.TOO_LARGE, f"{len(data)} bytes once decrypted, limit {limits.file_bytes}")
    return data


def installed_readers(limits: ParsingLimits) -> str:
    """Identity of what Unstructured reads files with, itself included; a file that lacked some of it is tried again."""
    if not (limits.unstructured or limits.unstructured_formats):
        return ""
    from rag_assets.parsing.conversion import OFFICE_TARGETS, PANDOC_FORMATS, find_program

    programs = (str(find_program(formats[0])[1]) for formats in (PANDOC_FORMATS, tuple(OFFICE_TARGETS)))
    try:
        requirements = importlib.metadata.requires("unstructured") or []
    except importlib.metadata.PackageNotFoundError:
        requirements = []
    names = {"unstructured", *(re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in requirements)}
    versions = [f"{name}=={version}" for name in sorted(names) if (version := installed_version(name))]
    return hashlib.sha256("\0".join([*programs, *versions]).encode()).hexdigest()[:16]
