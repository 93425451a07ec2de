"""A request as a list of chat messages, and what is said of it without quoting it."""

import re
from collections.abc import Sequence

from rag_assets.contracts.generation import Request

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_FOREIGN = re.compile(r"[^\x00-\x7f]{2,}")
_QUOTED_CHARS = 12  # a run of characters this long that stands in what was sent counts as quoted from it
_MESSAGE_CHARS = 300


def chat_messages(request: Request) -> list[dict[str, str]]:
    """The conversation, opened by a system message. What requests share comes first, for caches of beginnings."""
    system = "\n\n".join(part for part in (request.prefix, request.system) if part)
    opening = [{"role": "system", "content": sendable(system)}] if system else []
    return opening + [{"role": turn.role, "content": sendable(turn.text)} for turn in request.messages]


def sendable(text: str) -> str:
    """Text that can be written as UTF-8: lone surrogates become U+FFFD."""
    return text if text.isascii() else _LONE_SURROGATES.sub("\ufffd", text)


def unquoted(message: str, sent: Sequence[str]) -> str:
    """A message in one line, or nothing where it quotes what was sent.

    Args:
        message: What a server or library says.
        sent: Texts that it must not quote.
    """
    line = " ".join(_ESCAPED.sub(lambda match: chr(int(match[1], 16)), message).split())[:_MESSAGE_CHARS]
    texts = [" ".join(text.split()) for text in sent]
    pieces = set(_FOREIGN.findall(line))
    pieces |= {line[start : start + _QUOTED_CHARS] for start in range(max(1, len(line) - _QUOTED_CHARS + 1))}
    return "" if any(piece in text for text in texts for piece in pieces) else line
