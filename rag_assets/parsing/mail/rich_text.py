"""Bodies of Outlook messages that are compressed Rich Text alone ([MS-OXRTFCP]), as plain text.

What stays out: how the text looks, pictures in it, and HTML that is hidden in it ([MS-OXRTFEX]), of which the text is
read. Compression is undone by compressed-rtf, Rich Text is read by striprtf.
"""

import re

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError

# Of a character of two bytes Word writes the second one as itself where it is ASCII, which striprtf does not expect. In
# code pages of one byte the two are two characters, whichever way the second is written.
_PLAIN_SECOND_BYTE = re.compile(
    r"\\'(8[0-9a-f]|9[0-9a-f]|[a-f][0-9a-f])(?:\\'([0-9a-f]{2})|([@-\[\]-z|~]))", re.IGNORECASE
)


def rich_text_body(packed: bytes) -> str:
    """Text of a body as a message stores it.

    Raises:
        ParseError: MALFORMED where it cannot be unpacked or read.
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
