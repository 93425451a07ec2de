"""Outlook messages (msg): headers, bodies and names of attachments, decoded; messages attached to them.

What stays out: the compound file and its property streams, which python-oxmsg reads; the content of attached files;
blocks (`mail`); the text of bodies that are Rich Text alone (`rich_text`).
"""

from io import BytesIO
from typing import TYPE_CHECKING

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.limits import current_limits
from rag_assets.parsing.mail.parts import Body, Letter, decode_bytes, decode_header, one_line
from rag_assets.parsing.mail.rich_text import rich_text_body
from rag_assets.parsing.markup.reader import decode_html

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
    problems: list[tuple[FailureCause, str]] = []
    plain = _text(storage, _BODY, body_code_page)
    markup = _stream(storage, _HTML, "0102")
    html = decode_html(markup, body_code_page or None) if markup else _text(storage, _HTML, body_code_page)
    transport = _transport_headers(_text(storage, _TRANSPORT_HEADERS, code_page))
    is_opaque = _text(storage, _CLASS, code_page) == "IPM.Note.SMIME" and not (plain or html)
    if is_opaque or "encrypted" in transport.get("content-type", ""):
        problems.append((FailureCause.ENCRYPTED, "an encrypted message: its body cannot be read"))
        plain = html = ""
    elif not (plain or html) and (packed := _stream(storage, _RICH_TEXT, "0102")):
        try:
            plain = rich_text_body(packed)
        except ParseError as error:
            problems.append((error.cause, str(error)))
    names, attached = _attachments(storage, code_page, depth, problems)
    sent = properties.date_prop_value(_SUBMITTED)
    stated = {
        "From": transport.get("from") or _sender(storage, code_page),
        **_recipients(storage, code_page),
        "Date": sent.isoformat(" ", "minutes") if sent else transport.get("date", ""),
    }
    headers = tuple((name, text) for name, value in stated.items() if (text := one_line(value)))
    bodies = (Body(plain, html),) if plain or html else ()
    subject = one_line(_text(storage, _SUBJECT, code_page))
    return Letter(subject, headers, bodies, tuple(names), tuple(attached), tuple(problems))


def _attachments(
    storage: "Storage", code_page: str, depth: int, problems: list[tuple[FailureCause, str]]
) -> tuple[list[str], list[Letter]]:
    """Names of the attached files, and the attached messages."""
    from oxmsg.properties import Properties

    names: list[str] = []
    letters: list[Letter] = []
    limit = current_limits().nesting_depth
    for part in storage.iter_attachment_storages():
        method = Properties(part, properties_header_offset=_PART_OFFSET).int_prop_value(_METHOD)
        embedded = next((inner for inner in part.storages if inner.name == _EMBEDDED_STORAGE), None)
        if method == _EMBEDDED_MESSAGE and embedded is not None:
            if depth < limit:
                letters.append(_letter(embedded, _EMBEDDED_OFFSET, code_page, depth + 1))
                continue
            message = f"messages attached to each other deeper than {limit} levels (parsing.nesting_depth) are left out"
            problems.append((FailureCause.TOO_LARGE, message))
        texts = (_text(part, number, code_page) for number in (_LONG_NAME, _SHORT_NAME, _DISPLAY_NAME))
        if name := one_line(next(filter(None, texts), "")):
            names.append(name)
    return names, letters


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
    return {name: ", ".join(found) for name, found in people.items()}


def _transport_headers(text: str) -> dict[str, str]:
    from email.parser import HeaderParser

    headers = HeaderParser().parsestr(text)
    return {
        name.lower(): decode_header(str(headers[name])) for name in ("From", "Date", "Content-Type") if headers[name]
    }


def _text(storage: "Storage", number: int, code_page: str) -> str:
    """Text of a property; that in a code page is decoded as what it looks like where the code page is not stated."""
    if data := _stream(storage, number, "001F"):
        return data.decode("utf-16-le", "replace").rstrip("\0")
    return decode_bytes(_stream(storage, number, "001E").rstrip(b"\0"), code_page or None)


def _stream(storage: "Storage", number: int, kind: str) -> bytes:
    name = f"__substg1.0_{number:04X}{kind}"
    return next((stream.bytes_ for stream in storage.streams if stream.name.upper() == name.upper()), b"")


def _code_page(properties: "Properties", number: int) -> str:
    value = properties.int_prop_value(number)
    return "" if value is None else _CODE_PAGES.get(value, f"cp{value}")
