"""Closes elements of HTML that are left open and would swallow the text behind them.

A drawing, a formula, a template, a script or a comment without its end takes the rest of the page with it: readers of
HTML see no paragraphs there. Each is closed where page text begins again.

Deviation: browsers show nothing of what follows an open template, script, style sheet, title or comment; here it is
read, since text must not be lost.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from functools import cache

_BLOCK = (
    r"</?(?:address|article|aside|blockquote|body|caption|center|dd|details|div|dl|dt|fieldset|figcaption|figure|footer"
    r"|form|h[1-6]|head|header|hr|html|li|main|menu|nav|ol|p|pre|section|summary|table|tbody|td|tfoot|th|thead|tr|ul)"
    r"(?=[\s/>])"
)
_BEFORE_BLOCK = re.compile(f"(?={_BLOCK})", re.IGNORECASE)
_INERT = ("template", "noscript", "object", "iframe")
_HOLDING = re.compile(
    rf"<(?P<end>/?)(?P<name>svg|math|select|datalist|{'|'.join(_INERT)})(?=[\s/>])[^<>]*>?", re.IGNORECASE
)
_RAW = re.compile(r"<!--|<(?P<name>script|style|textarea|title)(?=[\s/>])[^<>]*>?", re.IGNORECASE)
# where page text begins again; in a script, blocks also stand in texts of the program
_RAW_BREAKS = {
    "script": re.compile(rf"(?<=[\n;}}>])[ \t\r\n]*+(?={_BLOCK})", re.IGNORECASE),
    "style": _BEFORE_BLOCK,
    "textarea": _BEFORE_BLOCK,
    "title": re.compile("(?=<)"),
}


def close_elements(text: str) -> str:
    """HTML in which no open element swallows the text behind it; the same text where all is closed.

    Takes time in proportion to the length of the text.
    """
    insertions, shown = _close_raw(text)
    open_tags: dict[str, list[re.Match[str]]] = defaultdict(list)
    for tag in _HOLDING.finditer(shown):
        name = tag["name"].lower()
        if tag["end"]:
            del open_tags[name][-1:]
        elif name in _INERT or not tag[0].endswith("/>"):
            open_tags[name].append(tag)
    blocks = [block.start() for block in _BEFORE_BLOCK.finditer(shown)] if any(open_tags.values()) else []
    for name, tags in open_tags.items():
        for tag in tags:
            place = bisect_left(blocks, tag.end())
            block = blocks[place] if place < len(blocks) else len(text)
            insertions.append((tag.end() if name in _INERT else block, f"</{name}>"))
    parts, start = [], 0
    for at, end_tag in sorted(insertions, key=lambda insertion: insertion[0]):
        parts += [text[start:at], end_tag]
        start = at
    return "".join((*parts, text[start:]))


def _close_raw(text: str) -> tuple[list[tuple[int, str]], str]:
    """Places and end tags of the comments, scripts and the like that lack one, and the text with blanks for what they
    hold.
    """

    @cache
    def last(mark: str) -> int:
        return max((match.start() for match in re.finditer(mark, text, re.IGNORECASE)), default=-1)

    insertions: list[tuple[int, str]] = []
    parts, position = [], 0
    while start := _RAW.search(text, position):
        end, is_missing = _raw_end(text, start, last)
        if is_missing:
            insertions.append((end, f"</{start['name']}>" if start["name"] else "-->"))
        parts += [text[position : start.end()], " " * (end - start.end())]
        position = end
    return insertions, "".join((*parts, text[position:]))


def _raw_end(text: str, start: re.Match[str], last: Callable[[str], int]) -> tuple[int, bool]:
    """Where what a comment or a raw element holds ends, and whether its end tag is missing there."""
    if start["name"] is None:
        inside = start.start() + 2  # of `<!-->`, which is whole
        return (text.index("-->", inside) + 3, False) if last("-->") >= inside else (start.end(), True)
    name, inside = start["name"].lower(), start.end()
    if start[0].endswith("/>"):
        return inside, True
    if last(f"</{name}") >= inside:
        end = re.compile(f"</{name}", re.IGNORECASE).search(text, inside)
        # what it holds cannot have these, so that an end behind them is that of another
        stop = re.compile(rf"<(?:/head|/?body|{name})(?=[\s/>])", re.IGNORECASE)
        if end and (name == "script" or not stop.search(text, inside, end.start())):
            return end.start(), False
    block = _RAW_BREAKS[name].search(text, inside)
    return (block.end() if block else len(text)), True
