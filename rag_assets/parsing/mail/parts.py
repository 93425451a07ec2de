"""Internet messages (eml): headers, bodies and names of attachments, decoded; messages attached to them.

Read with the standard library's parser, but decoded here: that gives up a message whose charset it does not know, and
takes bytes without a charset for damage, where Japanese mail is often written in CP932 or with characters of Windows in
ISO-2022-JP.
"""

import binascii
import email
import email.policy
import re
from dataclasses import dataclass, field
from email.message import Message
from typing import TypeAlias

from rag_assets.contracts.causes import FailureCause
from rag_assets.parsing.flow import clean
from rag_assets.parsing.limits import current_limits, depth_limit
from rag_assets.parsing.markup.reader import decode_html
from rag_assets.parsing.plain.text import decode_stated, decode_text
from rag_assets.text.plain import one_line

HEADERS = ("From", "To", "Cc", "Date")
_ENCODED_WORD = re.compile(r"=\?([^?\s]+)\?([bBqQ])\?([^?]*)\?=")
_SURROGATE = re.compile("[\udc80-\udcff]|\x1b\\$")
_NO_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # surrogates that stand for no byte of the file
_ENCRYPTED = {"multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"}
_MESSAGES = {"message/rfc822", "message/global"}

Part: TypeAlias = "Message[str, str]"


@dataclass(frozen=True, slots=True)
class Body:
    """A text of a message, in one form or in two that say the same.

    Attributes:
        plain: As plain text; empty where there is none.
        html: As HTML; empty where there is none.
    """

    plain: str = ""
    html: str = ""


@dataclass(slots=True)
class Letter:
    """A message as it was written.

    Attributes:
        subject: Its subject; empty where it has none.
        headers: Sender, recipients and date, as names with values.
        problems: What cannot be read, with the cause.
    """

    subject: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    bodies: list[Body] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    attached: list["Letter"] = field(default_factory=list)
    problems: list[tuple[FailureCause, str]] = field(default_factory=list)

    def leave_out_attached(self, depth: int) -> bool:
        """Whether a message attached at a depth lies below the limit on nesting; it is a problem then."""
        if depth < current_limits().nesting_depth:
            return False
        message = f"messages attached to each other deeper than {depth_limit()} are left out"
        self.problems.append((FailureCause.TOO_LARGE, message))
        return True

    def leave_out_encrypted(self) -> None:
        """Note that the body cannot be read."""
        self.problems.append((FailureCause.ENCRYPTED, "an encrypted message: its body cannot be read"))


class _RawHeaders(email.policy.Compat32):
    """Headers as they stand in the file: bytes beyond ASCII stay what they are until their charset is found."""

    def header_fetch_parse(self, name: str, value: str) -> str:  # noqa: ARG002 - the signature of a policy
        return value


def read_eml(data: bytes) -> Letter:
    """Read a message with those attached to it, at any depth within the limit on nesting."""
    return _letter(_parsed(data), 0)


def decode_bytes(data: bytes, charset: str | None) -> str:
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
    charset, pending, end = "", b"", 0  # the charset of the last word, bytes not decoded yet
    for word in _ENCODED_WORD.finditer(value):
        between = value[end : word.start()]
        stated, decoded = word[1].partition("*")[0].lower(), _word_bytes(word[2], word[3])
        if pending and (between.strip() or stated != charset):
            parts.append(decode_bytes(pending, charset))
            pending = b""
        if between.strip() or end == 0:
            parts.append(between)
        charset, pending, end = stated, pending + decoded, word.end()
    parts += [decode_bytes(pending, charset) if pending else "", value[end:]]
    return one_line(clean("".join(parts)))


def _word_bytes(encoding: str, text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    try:
        if encoding in "bB":
            return binascii.a2b_base64(data + b"=" * (-len(data) % 4))
        return binascii.a2b_qp(data, header=True)
    except binascii.Error:
        return data


def _parsed(data: bytes) -> Part:
    return email.message_from_bytes(data, policy=_RawHeaders())


def _letter(message: Part, depth: int) -> Letter:
    letter = Letter(decode_header(message.get("Subject", "")))
    letter.headers = {name: text for name in HEADERS if (text := decode_header(message.get(name, "")))}
    if message.get_content_type() in _ENCRYPTED:
        letter.leave_out_encrypted()
    else:
        _read_part(message, letter, depth)
    return letter


def _read_part(part: Part, letter: Letter, depth: int) -> None:
    """Read a part with all that it holds into a letter that is attached at a depth."""
    kind = part.get_content_type()
    children = [child for child in part.get_payload() if isinstance(child, Message)] if part.is_multipart() else []
    if kind in _MESSAGES:
        _read_attached(part, children, letter, depth)
    elif kind == "multipart/alternative":
        _read_alternatives(children, letter, depth)
    elif kind == "message/delivery-status":
        lines = (f"{name}: {decode_header(value)}" for child in children for name, value in child.items())
        letter.bodies.append(Body("\n".join(lines)))
    elif children:
        for child in children:
            _read_part(child, letter, depth)
    else:
        _read_leaf(part, kind, letter)


def _read_leaf(part: Part, kind: str, letter: Letter) -> None:
    name = decode_header(part.get_filename() or "")
    if name or part.get_content_disposition() == "attachment":
        letter.attachments.append(name or kind)
    elif part.get_content_maintype() == "text" and isinstance(data := part.get_payload(decode=True), bytes):
        charset = part.get_content_charset()
        is_html = kind == "text/html"
        letter.bodies.append(Body(html=decode_html(data, charset)) if is_html else Body(decode_bytes(data, charset)))


def _read_alternatives(children: list[Part], letter: Letter, depth: int) -> None:
    """Forms of one text: HTML and plain text; one that is neither, such as a calendar's, where it stands alone."""
    forms: list[list[Body]] = []
    usual: list[list[Body]] = []
    for child in children:
        form = Letter(attachments=letter.attachments, attached=letter.attached, problems=letter.problems)
        _read_part(child, form, depth)
        forms.append(form.bodies)
        kind = child.get_content_type()
        if not kind.startswith("text/") or kind in {"text/plain", "text/html"}:
            usual.append(form.bodies)
    html: list[str] = []
    plain: list[str] = []
    for bodies in usual if any(usual) else forms[:1]:
        formatted = [body.html for body in bodies if body.html]
        html += formatted
        plain += [] if formatted else [body.plain for body in bodies]
    if html or plain:
        letter.bodies.append(Body("\n\n".join(plain), "\n".join(html)))


def _read_attached(part: Part, children: list[Part], letter: Letter, depth: int) -> None:
    if letter.leave_out_attached(depth):
        return
    for child in children:
        text = child.get_payload()
        if isinstance(text, str) and not child.keys() and part.get("Content-Transfer-Encoding", "").strip():
            child = _parsed(_word_bytes("b", text))  # noqa: PLW2901 - not allowed by RFC 2046, but written
        letter.attached.append(_letter(child, depth + 1))
