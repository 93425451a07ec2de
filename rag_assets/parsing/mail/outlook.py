"""Outlook messages (msg): headers, bodies and names of attachments, decoded; messages attached to them.

The compound file and its property streams are read by python-oxmsg; bodies that are Rich Text alone are unpacked by
compressed-rtf and read by striprtf.
"""

import re
from io import BytesIO
from typing import TYPE_CHECKING

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.flow import clean
from rag_assets.parsing.mail.parts import Body, Letter, decode_bytes, decode_header
from rag_assets.parsing.markup.reader import decode_html
from rag_assets.text.plain import one_line

if TYPE_CHECKING:
    from oxmsg.properties import Properties
    from oxmsg.storage import Storage

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


def read_msg(data: bytes) -> Letter:
    """Read an Outlook message with those attached to it, at any depth within the limit on nesting."""
    from olefile import OleFileIO
    from oxmsg.storage import Storage

    with OleFileIO(BytesIO(data)) as container:
        storage = Storage.from_ole(container)
    return _letter(storage, _FILE_OFFSET, "", 0)


def _letter(storage: "Storage", offset: int, code_page: str, depth: int) -> Letter:
    from oxmsg.properties import Properties

    properties = Properties(storage, properties_header_offset=offset)
    code_page = _code_page(properties, _MESSAGE_CODE_PAGE) or code_page
    body_code_page = _code_page(properties, _BODY_CODE_PAGE) or code_page
    letter = Letter(one_line(clean(_text(storage, _SUBJECT, code_page))))
    plain = _text(storage, _BODY, body_code_page)
    markup = _stream(storage, _HTML, "0102")
    html = decode_html(markup, body_code_page) if markup else _text(storage, _HTML, body_code_page)
    transport = _transport_headers(_text(storage, _TRANSPORT_HEADERS, code_page))
    is_opaque = _text(storage, _CLASS, code_page) == "IPM.Note.SMIME" and not (plain or html)
    if is_opaque or "encrypted" in transport.get("content-type", ""):
        letter.leave_out_encrypted()
        plain = html = ""
    elif not (plain or html) and (packed := _stream(storage, _RICH_TEXT, "0102")):
        try:
            plain = _rich_text(packed)
        except ParseError as error:
            letter.problems.append((error.cause, str(error)))
    _read_attachments(storage, code_page, letter, depth)
    sent = properties.date_prop_value(_SUBMITTED)
    stated = {
        "From": transport.get("from") or _sender(storage, code_page),
        **_recipients(storage, code_page),
        "Date": sent.isoformat(" ", "minutes") if sent else transport.get("date", ""),
    }
    letter.headers = {name: text for name, value in stated.items() if (text := one_line(clean(value)))}
    letter.bodies = [Body(plain, html)] if plain or html else []
    return letter


def _read_attachments(storage: "Storage", code_page: str, letter: Letter, depth: int) -> None:
    """Names of the attached files, and the attached messages."""
    from oxmsg.properties import Properties

    for part in storage.iter_attachment_storages():
        method = Properties(part, properties_header_offset=_PART_OFFSET).int_prop_value(_METHOD)
        embedded = next((inner for inner in part.storages if inner.name == _EMBEDDED_STORAGE), None)
        if method == _EMBEDDED_MESSAGE and embedded is not None and not letter.leave_out_attached(depth):
            letter.attached.append(_letter(embedded, _EMBEDDED_OFFSET, code_page, depth + 1))
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
    return {name: ", ".join(listed) for name, listed in people.items()}


def _transport_headers(text: str) -> dict[str, str]:
    from email.parser import HeaderParser

    headers = HeaderParser().parsestr(text)
    return {
        name.lower(): decode_header(str(headers[name])) for name in ("From", "Date", "Content-Type") if headers[name]
    }


def _rich_text(packed: bytes) -> str:
    """Text of a body as a message stores it: compressed Rich Text ([MS-OXRTFCP]); MALFORMED where it cannot be read.

    Of HTML that is hidden in it ([MS-OXRTFEX]) the text is read.
    """
    from compressed_rtf import decompress
    from striprtf.striprtf import rtf_to_text

    try:
        source = decompress(packed).decode("latin-1")
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
    return decode_bytes(_stream(storage, number, "001E").rstrip(b"\0"), code_page)


def _stream(storage: "Storage", number: int, kind: str) -> bytes:
    name = f"__substg1.0_{number:04X}{kind}"
    return next((stream.bytes_ for stream in storage.streams if stream.name.upper() == name.upper()), b"")


def _code_page(properties: "Properties", number: int) -> str:
    value = properties.int_prop_value(number)
    return "" if value is None else _CODE_PAGES.get(value, f"cp{value}")
