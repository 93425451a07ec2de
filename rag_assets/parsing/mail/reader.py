"""Messages (eml, msg): subject, sender and recipients, the body, names of attachments, attached messages as sections.

Attached files are never opened, and nothing that a message refers to elsewhere is.
"""

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.content import Block, Failure, Page, ParsedDocument
from rag_assets.contracts.errors import ParseError
from rag_assets.contracts.formats import DocumentFormat
from rag_assets.parsing.flow import Sections, letters
from rag_assets.parsing.mail.outlook import read_msg
from rag_assets.parsing.mail.parts import Body, Letter, read_eml
from rag_assets.parsing.markup.reader import Markup, on_first_page, read_markup
from rag_assets.parsing.plain.text import text_blocks

_DAMAGE = (ValueError, LookupError, OSError, AttributeError, TypeError, AssertionError, OverflowError, struct.error)
_REFERENCE = re.compile(r"<?https?://\S+>?|\[(?:image|cid|図)[:：][^\]]*\]")
_PUNCTUATION = re.compile(r"[^\w\s]+")
_UNTITLED = "（件名なし）"


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
        letter = read_eml(data) if document_format is DocumentFormat.EML else read_msg(data)
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
    letter: Letter,
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
    if names := [*letter.attachments, *map(_listed, letter.attached)]:
        yield Block(BlockKind.NOTE, f"添付ファイル: {', '.join(names)}", section)
    for attached in letter.attached:
        yield from _letter_blocks(attached, section or (_UNTITLED,), failures)


def _listed(letter: Letter) -> str:
    """An attached message as it is listed among the attachments: subject, sender, date."""
    facts = ", ".join(letter.headers[name] for name in ("From", "Date") if name in letter.headers)
    return f"メール「{letter.subject or _UNTITLED}」" + (f" ({facts})" if facts else "")


def _body_blocks(body: Body, section: tuple[str, ...], failures: list[Failure]) -> Iterator[Block]:
    plain = list(text_blocks(body.plain, Sections(section)))
    markup = Markup()
    if body.html:
        try:
            markup = read_markup(body.html, section)
        except ParseError as error:
            failures.append(Failure(error.cause, f"HTML body: {error}", 1))
    failures += on_first_page(markup.failures)
    yield from markup.blocks
    yield from _lacking(plain, markup.blocks, section) if markup.blocks else plain


def _lacking(plain: Iterable[Block], formatted: Sequence[Block], section: tuple[str, ...]) -> Iterator[Block]:
    """Of the plain form of a text the lines that the HTML lacks: those of which it holds less than half."""
    shown = letters(" ".join(block.text for block in formatted))
    for block in plain:
        if lines := [line for line in block.text.split("\n") if _is_lacking(line, shown)]:
            kind = BlockKind.PARAGRAPH if block.kind is BlockKind.HEADING else block.kind
            yield Block(kind, "\n".join(lines), section)


def _is_lacking(line: str, shown: str) -> bool:
    clauses = [letters(clause) for clause in _PUNCTUATION.split(_REFERENCE.sub(" ", line))]
    absent = sum(len(clause) for clause in clauses if clause not in shown)
    return absent * 2 > sum(map(len, clauses))
