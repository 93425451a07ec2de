"""Messages (eml, msg): subject, sender and recipients, the body, names of attachments, attached messages as sections.

Attached files are never opened, and nothing that a message refers to elsewhere is.

Internet messages (eml) are read with the standard library's parser, but decoded here: that gives up a message whose
charset it does not know, and takes bytes without a charset for damage, where Japanese mail is often written in CP932 or
with characters of Windows in ISO-2022-JP. Of Outlook messages (msg) python-oxmsg reads the compound file and its
property streams; bodies that are Rich Text alone are unpacked by compressed-rtf and read by striprtf.
"""

import binascii
import email
import email.policy
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from email.message import Message
from io import BytesIO
from typing import TYPE_CHECKING, TypeAlias

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.content import Block, Failure, Page, ParsedDocument
from rag_assets.contracts.errors import ParseError
from rag_assets.contracts.formats import DocumentFormat
from rag_assets.parsing.flow import Sections, clean, letters
from rag_assets.parsing.limits import current_limits, depth_limit
from rag_assets.parsing.markup.reader import Markup, decode_html, on_first_page, read_markup
from rag_assets.parsing.plain.text import decode_stated, decode_text, text_blocks
from rag_assets.text.plain import one_line

if TYPE_CHECKING:
    from oxmsg.properties import Properties
    from oxmsg.storage import Storage

_DAMAGE = (ValueError, LookupError, OSError, AttributeError, TypeError, AssertionError, OverflowError, struct.error)
_REFERENCE = re.compile(r"<?https?://\S+>?|\[(?:image|cid|図)[:：][^\]]*\]")
_PUNCTUATION = re.compile(r"[^\w\s]+")
_UNTITLED = "（件名なし）"

# Internet messages.
_HEADERS = ("From", "To", "Cc", "Date")
_ENCODED_WORD = re.compile(r"=\?([^?\s]+)\?([bBqQ])\?([^?]*)\?=")
_SURROGATE = re.compile("[\udc80-\udcff]|\x1b\\$")
_NO_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # surrogates that stand for no byte of the file
_ENCRYPTED = {"multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"}
_MESSAGES = {"message/rfc822", "message/global"}

_Part: TypeAlias = "Message[str, str]"

# Outlook messages.
_FILE_OFFSET, _EMBEDDED_OFFSET, _PART_OFFSET = 32, 24, 8  # where the properties of a storage begin, by its kind
_CLASS, _SUBJECT, _SUBMITTED, _TRANSPORT_HEADERS = 0x001A, 0x0037, 0x0039, 0x007D
_SENDER_NAME, _SENDER_ADDRESS, _SENDER_SMTP_ADDRESS, _REPRESENTED = 0x0C1A, 0x0C1F, 0x5D01, 0x0042
_RECIPIENT_KIND, _DISPLAY_NAME, _ADDRESS, _SMTP_ADDRESS = 0x0C15, 0x3001, 0x3003, 0x39FE
_BODY, _RICH_TEXT, _HTML = 0x1000, 0x1009, 0x1013
_SHORT_NAME, _METHOD, _LONG_NAME = 0x3704, 0x3705, 0x3707
_EMBEDDED_MESSAGE, _EMBEDDED_STORAGE = 5, "__substg1.0_3701000D"
_MESSAGE_CODE_PAGE, _BODY_CODE_PAGE = 0x3FFD, 0x3FDE
_CODE_PAGES = {65001: "utf-8", 50220: "iso-2022-jp", 50221: "iso-2022-jp", 50222: "iso-2022-jp", 51932: "euc-jp"}
# Of a character of two bytes Word writes the second one as itself where it is ASCII, which striprtf does not expect. In
# code pages of one byte the two are two characters, whichever way the second is written.
_PLAIN_SECOND_BYTE = re.compile(
    r"\\'(8[0-9a-f]|9[0-9a-f]|[a-f][0-9a-f])(?:\\'([0-9a-f]{2})|([@-\[\]-z|~]))", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Body:
    """A text of a message, in one form or in two that say the same."""

    plain: str = ""  # as plain text; empty where there is none
    html: str = ""  # as HTML; empty where there is none


@dataclass(slots=True)
class _Letter:
    """A message as it was written."""

    subject: str = ""  # its subject; empty where it has none
    headers: dict[str, str] = field(default_factory=dict)  # sender, recipients and date, as names with values
    bodies: list[_Body] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    attached: list["_Letter"] = field(default_factory=list)
    problems: list[tuple[FailureCause, str]] = field(default_factory=list)  # what cannot be read, with the cause

    def leave_out_attached(self, depth: int) -> bool:
        """Whether a message attached at a depth lies below the limit on nesting; it is a problem then."""
        if depth < current_limits().nesting_depth:
            return False
        message = f"messages attached to each other deeper than {depth_limit()} are left out"
        self.problems.append((FailureCause.TOO_LARGE, message))
        return True

    def leave_out_encrypted(self) -> None:
        """Note that the body cannot be read."""
        self.problems.append((FailureCause.ENCRYPTED, "the message is encrypted: its body cannot be read"))


def parse_message(
    data: bytes,
    document_format: DocumentFormat,
    read_body: Callable[[tuple[str, ...]], Iterable[Block]] | None = None,
) -> ParsedDocument:
    """Parse a message.

    Args:
        data: The bytes of the file.
        document_format: EML or MSG.
        read_body: Another reader of the body, given the headings above it; it is not asked for attached messages.

    Returns:
        One page: the subject as heading, sender and recipients, the body, a note that lists the attachments, and each
        attached message in the same way below its own subject. Where a body is written both as HTML and as plain text,
        the HTML is read, with the lines of the plain text that it lacks behind it.

    Raises:
        ParseError: MALFORMED where the message cannot be read; ENCRYPTED where its body is; TOO_LARGE where its parts
            are nested deeper than can be followed.
    """
    try:
        letter = _eml_letter(_parsed(data), 0) if document_format is DocumentFormat.EML else _read_msg(data)
    except RecursionError as error:
        raise ParseError(FailureCause.TOO_LARGE, "message: its parts are nested too deep") from error
    except _DAMAGE as error:
        raise ParseError(FailureCause.MALFORMED, f"message: {type(error).__name__}: {error}") from error
    for cause, problem in letter.problems:
        if cause is FailureCause.ENCRYPTED:
            raise ParseError(cause, problem)
    failures: list[Failure] = []
    page = Page(1, PageKind.BODY, tuple(_letter_blocks(letter, (), failures, read_body)))
    return ParsedDocument(document_format.value, letter.subject or None, (page,), tuple(failures))


def _letter_blocks(
    letter: _Letter,
    above: tuple[str, ...],
    failures: list[Failure],
    read_body: Callable[[tuple[str, ...]], Iterable[Block]] | None = None,
) -> Iterator[Block]:
    subject = letter.subject or (_UNTITLED if above else "")
    section = (*above, subject) if subject else above
    if subject:
        yield Block(BlockKind.HEADING, subject, above)
    if letter.headers:
        yield Block(
            BlockKind.PARAGRAPH, "\n".join(f"{name}: {value}" for name, value in letter.headers.items()), section
        )
    failures += [Failure(cause, f"{subject or 'message'}: {problem}", 1) for cause, problem in letter.problems]
    if read_body is not None:
        yield from read_body(section)
    else:
        for body in letter.bodies:
            yield from _body_blocks(body, section, failures)
    if names := [*letter.attachments, *map(_attachment_name, letter.attached)]:
        yield Block(BlockKind.NOTE, f"添付ファイル: {', '.join(names)}", section)
    for attachment in letter.attached:
        yield from _letter_blocks(attachment, section or (_UNTITLED,), failures)


def _attachment_name(letter: _Letter) -> str:
    """An attached message as it is listed among the attachments: subject, sender, date."""
    facts = ", ".join(letter.headers[name] for name in ("From", "Date") if name in letter.headers)
    return f"メール「{letter.subject or _UNTITLED}」" + (f" ({facts})" if facts else "")


def _body_blocks(body: _Body, section: tuple[str, ...], failures: list[Failure]) -> Iterator[Block]:
    plain = list(text_blocks(body.plain, Sections(section)))
    markup = Markup()
    if body.html:
        try:
            markup = read_markup(body.html, section)
        except ParseError as error:
            failures.append(Failure(error.cause, f"HTML body: {error}", 1))
    failures += on_first_page(markup.failures)
    yield from markup.blocks
    yield from _missing_lines(plain, markup.blocks, section) if markup.blocks else plain


def _missing_lines(plain: Iterable[Block], html_blocks: Sequence[Block], section: tuple[str, ...]) -> Iterator[Block]:
    """Of the plain form of a text the lines that the HTML lacks: those of which it holds less than half."""
    html_letters = letters(" ".join(block.text for block in html_blocks))
    for block in plain:
        if lines := [line for line in block.text.split("\n") if _is_lacking(line, html_letters)]:
            kind = BlockKind.PARAGRAPH if block.kind is BlockKind.HEADING else block.kind
            yield Block(kind, "\n".join(lines), section)


def _is_lacking(line: str, html_letters: str) -> bool:
    clauses = [letters(clause) for clause in _PUNCTUATION.split(_REFERENCE.sub(" ", line))]
    absent_chars = sum(len(clause) for clause in clauses if clause not in html_letters)
    return absent_chars * 2 > sum(map(len, clauses))


class _RawHeaders(email.policy.Compat32):
    """Headers as they stand in the file: bytes beyond ASCII stay what they are until their charset is found."""

    def header_fetch_parse(self, name: str, value: str) -> str:  # noqa: ARG002 - the signature of a policy
        return value


def _decode_bytes(data: bytes, charset: str | None) -> str:
    """Decode by the stated charset where it is known and the bytes are written in it, else by what they look like."""
    text = decode_stated(data, charset) if charset else None
    return decode_text(data) if text is None else text


def decode_header(value: str) -> str:
    """A header in one line, its encoded words (RFC 2047) decoded.

    Words of one charset that follow each other are joined before they are decoded: programs part them within a
    character.
    """
    value = _NO_BYTE.sub("\ufffd", value)
    if _SURROGATE.search(value):
        value = decode_text(value.encode("utf-8", "surrogateescape"))
    parts: list[str] = []
    charset, pending_bytes, end = "", b"", 0  # the charset of the last word, bytes not decoded yet
    for word in _ENCODED_WORD.finditer(value):
        between = value[end : word.start()]
        word_charset, word_bytes = word[1].partition("*")[0].lower(), _word_bytes(word[2], word[3])
        if pending_bytes and (between.strip() or word_charset != charset):
            parts.append(_decode_bytes(pending_bytes, charset))
            pending_bytes = b""
        if between.strip() or end == 0:
            parts.append(between)
        charset, pending_bytes, end = word_charset, pending_bytes + word_bytes, word.end()
    parts += [_decode_bytes(pending_bytes, charset) if pending_bytes else "", value[end:]]
    return one_line(clean("".join(parts)))


def _word_bytes(encoding: str, text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    try:
        if encoding in "bB":
            return binascii.a2b_base64(data + b"=" * (-len(data) % 4))
        return binascii.a2b_qp(data, header=True)
    except binascii.Error:
        return data


def _parsed(data: bytes) -> _Part:
    return email.message_from_bytes(data, policy=_RawHeaders())


def _eml_letter(message: _Part, depth: int) -> _Letter:
    """An Internet message with those attached to it, at any depth within the limit on nesting."""
    letter = _Letter(decode_header(message.get("Subject", "")))
    letter.headers = {name: text for name in _HEADERS if (text := decode_header(message.get(name, "")))}
    if message.get_content_type() in _ENCRYPTED:
        letter.leave_out_encrypted()
    else:
        _read_part(message, letter, depth)
    return letter


def _read_part(part: _Part, letter: _Letter, depth: int) -> None:
    """Read a part with all that it holds into a letter that is attached at a depth."""
    kind = part.get_content_type()
    children = [child for child in part.get_payload() if isinstance(child, Message)] if part.is_multipart() else []
    if kind in _MESSAGES:
        _read_attached(part, children, letter, depth)
    elif kind == "multipart/alternative":
        _read_alternatives(children, letter, depth)
    elif kind == "message/delivery-status":
        lines = (f"{name}: {decode_header(value)}" for child in children for name, value in child.items())
        letter.bodies.append(_Body("\n".join(lines)))
    elif children:
        for child in children:
            _read_part(child, letter, depth)
    else:
        _read_leaf(part, kind, letter)


def _read_leaf(part: _Part, kind: str, letter: _Letter) -> None:
    name = decode_header(part.get_filename() or "")
    if name or part.get_content_disposition() == "attachment":
        letter.attachments.append(name or kind)
    elif part.get_content_maintype() == "text" and isinstance(data := part.get_payload(decode=True), bytes):
        charset = part.get_content_charset()
        is_html = kind == "text/html"
        letter.bodies.append(_Body(html=decode_html(data, charset)) if is_html else _Body(_decode_bytes(data, charset)))


def _read_alternatives(children: list[_Part], letter: _Letter, depth: int) -> None:
    """Forms of one text: HTML and plain text; one that is neither, such as a calendar's, where it stands alone."""
    forms: list[list[_Body]] = []
    usual: list[list[_Body]] = []
    for child in children:
        form = _Letter(attachments=letter.attachments, attached=letter.attached, problems=letter.problems)
        _read_part(child, form, depth)
        forms.append(form.bodies)
        kind = child.get_content_type()
        if not kind.startswith("text/") or kind in {"text/plain", "text/html"}:
            usual.append(form.bodies)
    html: list[str] = []
    plain: list[str] = []
    for bodies in usual if any(usual) else forms[:1]:
        html_bodies = [body.html for body in bodies if body.html]
        html += html_bodies
        plain += [] if html_bodies else [body.plain for body in bodies]
    if html or plain:
        letter.bodies.append(_Body("\n\n".join(plain), "\n".join(html)))


def _read_attached(part: _Part, children: list[_Part], letter: _Letter, depth: int) -> None:
    if letter.leave_out_attached(depth):
        return
    for child in children:
        text = child.get_payload()
        if isinstance(text, str) and not child.keys() and part.get("Content-Transfer-Encoding", "").strip():
            child = _parsed(_word_bytes("b", text))  # noqa: PLW2901 - not allowed by RFC 2046, but written
        letter.attached.append(_eml_letter(child, depth + 1))


def _read_msg(data: bytes) -> _Letter:
    """Read an Outlook message with those attached to it, at any depth within the limit on nesting."""
    from olefile import OleFileIO
    from oxmsg.storage import Storage

    with OleFileIO(BytesIO(data)) as container:
        storage = Storage.from_ole(container)
    return _msg_letter(storage, _FILE_OFFSET, "", 0)


def _msg_letter(storage: "Storage", offset: int, code_page: str, depth: int) -> _Letter:
    from oxmsg.properties import Properties

    properties = Properties(storage, properties_header_offset=offset)
    code_page = _code_page(properties, _MESSAGE_CODE_PAGE) or code_page
    body_code_page = _code_page(properties, _BODY_CODE_PAGE) or code_page
    letter = _Letter(one_line(clean(_text(storage, _SUBJECT, code_page))))
    plain = _text(storage, _BODY, body_code_page)
    markup = _stream(storage, _HTML, "0102")
    html = decode_html(markup, body_code_page) if markup else _text(storage, _HTML, body_code_page)
    transport = _transport_headers(_text(storage, _TRANSPORT_HEADERS, code_page))
    is_opaque = _text(storage, _CLASS, code_page) == "IPM.Note.SMIME" and not (plain or html)
    if is_opaque or "encrypted" in transport.get("content-type", ""):
        letter.leave_out_encrypted()
        plain = html = ""
    elif not (plain or html) and (rich_text := _stream(storage, _RICH_TEXT, "0102")):
        try:
            plain = _rich_text(rich_text)
        except ParseError as error:
            letter.problems.append((error.cause, str(error)))
    _read_attachments(storage, code_page, letter, depth)
    sent_at = properties.date_prop_value(_SUBMITTED)
    values = {
        "From": transport.get("from") or _sender(storage, code_page),
        **_recipients(storage, code_page),
        "Date": sent_at.isoformat(" ", "minutes") if sent_at else transport.get("date", ""),
    }
    letter.headers = {name: text for name, value in values.items() if (text := one_line(clean(value)))}
    letter.bodies = [_Body(plain, html)] if plain or html else []
    return letter


def _read_attachments(storage: "Storage", code_page: str, letter: _Letter, depth: int) -> None:
    """Names of the attached files, and the attached messages."""
    from oxmsg.properties import Properties

    for part in storage.iter_attachment_storages():
        method = Properties(part, properties_header_offset=_PART_OFFSET).int_prop_value(_METHOD)
        embedded_storage = next((inner for inner in part.storages if inner.name == _EMBEDDED_STORAGE), None)
        if method == _EMBEDDED_MESSAGE and embedded_storage is not None and not letter.leave_out_attached(depth):
            letter.attached.append(_msg_letter(embedded_storage, _EMBEDDED_OFFSET, code_page, depth + 1))
            continue
        texts = (_text(part, number, code_page) for number in (_LONG_NAME, _SHORT_NAME, _DISPLAY_NAME))
        if name := one_line(clean(next(filter(None, texts), ""))):
            letter.attachments.append(name)


def _sender(storage: "Storage", code_page: str) -> str:
    name = _text(storage, _SENDER_NAME, code_page).strip()
    address = _text(storage, _SENDER_ADDRESS, code_page) or _text(storage, _SENDER_SMTP_ADDRESS, code_page)
    if not address:
        return name or _text(storage, _REPRESENTED, code_page)
    return f'"{name}" <{address}>' if name else f"<{address}>"


def _recipients(storage: "Storage", code_page: str) -> dict[str, str]:
    from oxmsg.properties import Properties

    people: dict[str, list[str]] = {"To": [], "Cc": []}
    for part in storage.iter_recipient_storages():
        kind = Properties(part, properties_header_offset=_PART_OFFSET).int_prop_value(_RECIPIENT_KIND)
        name = _text(part, _DISPLAY_NAME, code_page)
        address = _text(part, _SMTP_ADDRESS, code_page) or _text(part, _ADDRESS, code_page)
        people["Cc" if kind == 2 else "To"].append(f"{name} <{address}>" if address != name else name)
    return {name: ", ".join(recipients) for name, recipients in people.items()}


def _transport_headers(text: str) -> dict[str, str]:
    from email.parser import HeaderParser

    headers = HeaderParser().parsestr(text)
    return {
        name.lower(): decode_header(str(headers[name])) for name in ("From", "Date", "Content-Type") if headers[name]
    }


def _rich_text(data: bytes) -> str:
    """Text of a body as a message stores it: compressed Rich Text ([MS-OXRTFCP]); MALFORMED where it cannot be read.

    Of HTML that is hidden in it ([MS-OXRTFEX]) the text is read.
    """
    from compressed_rtf import decompress
    from striprtf.striprtf import rtf_to_text

    try:
        source = decompress(data).decode("latin-1")
        text = rtf_to_text(_PLAIN_SECOND_BYTE.sub(_escaped, source), errors="replace")  # type: ignore[no-untyped-call]
        return str(text).replace("\r", "").strip()
    except MemoryError:
        raise
    except Exception as error:  # compressed-rtf raises nothing narrower
        raise ParseError(FailureCause.MALFORMED, f"Rich Text body: {type(error).__name__}: {error}") from error


def _escaped(match: "re.Match[str]") -> str:
    return rf"\'{match[1]}\'{match[2] or format(ord(match[3]), '02x')}"


def _text(storage: "Storage", number: int, code_page: str) -> str:
    """Text of a property; that in a code page is decoded as what it looks like where the code page is not stated."""
    if data := _stream(storage, number, "001F"):
        return data.decode("utf-16-le", "replace").rstrip("\0")
    return _decode_bytes(_stream(storage, number, "001E").rstrip(b"\0"), code_page)


def _stream(storage: "Storage", number: int, kind: str) -> bytes:
    name = f"__substg1.0_{number:04X}{kind}"
    return next((stream.bytes_ for stream in storage.streams if stream.name.upper() == name.upper()), b"")


def _code_page(properties: "Properties", number: int) -> str:
    value = properties.int_prop_value(number)
    return "" if value is None else _CODE_PAGES.get(value, f"cp{value}")
