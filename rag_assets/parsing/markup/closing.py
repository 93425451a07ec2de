"""Closes elements of HTML that are left open and would swallow the text behind them.

A drawing, a formula, a template, a script or a comment without its end takes the rest of the page with it: readers of
HTML see no paragraphs there. Each is closed where page text begins again.

Deviation: browsers show nothing of what follows an open template, script, style sheet, title or comment; here it is
read, since text must not be lost.
"""

import re
from collections import Counter
from dataclasses import dataclass

_BLOCKS = (
    "address|article|aside|blockquote|body|caption|center|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|"
    "h[1-6]|header|hr|li|main|menu|nav|ol|p|pre|section|summary|table|tbody|td|tfoot|th|thead|tr|ul"
)
_FOREIGN = ("svg", "math")
_CHOICES = ("select", "datalist")
_INERT = ("template", "noscript", "object", "iframe")
_ISLANDS = ("foreignobject", "desc", "annotation-xml", "mtext")  # parts of drawings and formulas that hold HTML
_RAW = ("script", "style", "textarea", "title")
_HOLDING = (*_FOREIGN, *_CHOICES, *_INERT, *_ISLANDS)
_SWALLOWING = "|".join((*_HOLDING, *_RAW))
_TAG = re.compile(rf"<!--|<(?P<end>/?)(?P<name>{_SWALLOWING}|{_BLOCKS})(?=[\s/>])", re.IGNORECASE)
_BEGINNING = re.compile(rf"<!--|<(?P<end>)(?P<name>{_SWALLOWING})(?=[\s/>])", re.IGNORECASE)
_TAG_END = re.compile(r"""(?:[^>"']++|"[^"]*+"|'[^']*+')*+>""")
_BLOCK = re.compile(rf"</?(?:{_BLOCKS}|head|html)(?=[\s/>])", re.IGNORECASE)
# in a script, blocks also stand in texts of the program
_BLOCK_BEHIND_CODE = re.compile(rf"(?<=[\n;}}>])[ \t\r\n]*+(?={_BLOCK.pattern})", re.IGNORECASE)
_RAW_BREAK = {"script": _BLOCK_BEHIND_CODE, "style": _BLOCK, "textarea": _BLOCK, "title": re.compile("<")}
# what an element holds cannot have these, so that an end behind them is that of another
_RAW_STOP = {
    "style": re.compile(r"<(?:/head|body|style)(?=[\s/>])", re.IGNORECASE),
    "title": re.compile(r"<(?:/head|body|title)(?=[\s/>])", re.IGNORECASE),
    "textarea": re.compile(r"<(?:/body|textarea)(?=[\s/>])", re.IGNORECASE),
}


@dataclass(slots=True)
class _Open:
    name: str
    content_at: int
    block_at: int | None = None  # where the first block stands in it


def close_elements(text: str) -> str:
    """HTML in which no open element swallows the text behind it; the same text where all is closed.

    Takes time in proportion to the length of the text.
    """
    return _Closing(text).closed()


class _Closing:
    def __init__(self, text: str) -> None:
        self._text = text
        self._insertions: list[tuple[int, str]] = []
        self._open: list[_Open] = []
        self._counts: Counter[str] = Counter()  # of the open elements
        self._last_ends: dict[str, int] = {}
        self._tags_end = True  # until a quotation mark is never closed: looking for its end at each tag would take long

    def closed(self) -> str:
        position = 0
        while match := (_TAG if self._open else _BEGINNING).search(self._text, position):
            name = (match["name"] or "").lower()
            if not name:
                position = self._after_comment(match.start())
            elif match["end"]:
                self._end(name, match.start())
                position = match.end()
            else:
                position = self._begin(name, match)
        self._leave_open(0, len(self._text))
        parts, start = [], 0
        for at, end_tag in sorted(self._insertions, key=lambda insertion: insertion[0]):
            parts += [self._text[start:at], end_tag]
            start = at
        return "".join((*parts, self._text[start:]))

    def _after_comment(self, start: int) -> int:
        if self._last_end("-->") >= start + 2:
            return self._text.index("-->", start + 2) + 3
        self._insertions.append((start + 4, "-->"))
        return start + 4

    def _begin(self, name: str, match: re.Match[str]) -> int:
        tag_end = _TAG_END.match(self._text, match.end()) if self._tags_end else None
        self._tags_end = tag_end is not None
        content_at = tag_end.end() if tag_end else match.end()
        is_empty = self._text[content_at - 2 : content_at] == "/>"
        if name in _RAW:
            return self._after_raw(name, content_at, is_empty=is_empty)
        if name in _HOLDING:
            if not is_empty:
                if name in _CHOICES and self._open and self._open[-1].name in _CHOICES:  # they hold no others
                    self._leave_open(len(self._open) - 1, match.start())
                self._open.append(_Open(name, content_at))
                self._counts[name] += 1
            elif name in _INERT:
                self._insertions.append((content_at, f"</{name}>"))
        else:
            self._meet_block(match.start())
        return content_at

    def _after_raw(self, name: str, content_at: int, *, is_empty: bool) -> int:
        if is_empty:
            self._insertions.append((content_at, f"</{name}>"))
            return content_at
        if self._last_end(f"</{name}") >= content_at:
            end = re.compile(f"</{name}", re.IGNORECASE).search(self._text, content_at)
            stop = _RAW_STOP[name].search(self._text, content_at, end.start()) if end and name in _RAW_STOP else None
            if end and not stop:
                return end.end()
        block = _RAW_BREAK[name].search(self._text, content_at)
        if block is None:
            return len(self._text)
        at = block.end() if name == "script" else block.start()
        self._insertions.append((at, f"</{name}>"))
        return at

    def _end(self, name: str, start: int) -> None:
        if self._counts[name]:
            index = next(i for i in range(len(self._open) - 1, -1, -1) if self._open[i].name == name)
            self._leave_open(index + 1, start)
            self._pop()
        elif name not in (*_HOLDING, *_RAW):
            self._meet_block(start)

    def _meet_block(self, at: int) -> None:
        """A block ends the drawings and formulas around it, as the standard has it, and perhaps a list to choose of."""
        lowest = index = len(self._open)
        while index and self._open[index - 1].name in (*_FOREIGN, *_CHOICES):
            index -= 1
            lowest = index if self._open[index].name in _FOREIGN else lowest
        while len(self._open) > lowest:
            self._insertions.append((at, f"</{self._pop().name}>"))
        if self._open and self._open[-1].name in _CHOICES and self._open[-1].block_at is None:
            self._open[-1].block_at = at

    def _leave_open(self, first: int, end: int) -> None:
        """Close what is still open from an index on; it has no end of its own before a position."""
        while len(self._open) > first:
            element = self._pop()
            if element.name in _INERT:
                self._insertions.append((element.content_at, f"</{element.name}>"))
            elif element.name in _CHOICES:
                self._insertions.append((end if element.block_at is None else element.block_at, f"</{element.name}>"))

    def _pop(self) -> _Open:
        self._counts[self._open[-1].name] -= 1
        return self._open.pop()

    def _last_end(self, mark: str) -> int:
        if mark not in self._last_ends:
            ends = re.finditer(re.escape(mark), self._text, re.IGNORECASE)
            self._last_ends[mark] = max((match.start() for match in ends), default=-1)
        return self._last_ends[mark]
