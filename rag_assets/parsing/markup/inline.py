"""What elements of HTML say within a line: text as displayed, pictures, links, form controls, formulas, what is hidden.

A check box reads `☑` or `☐`, an option button `◉` or `○`, a list to choose from as its options with such marks, any
other control as its value or else its hint. Text that is not shown reads `（非表示: …）`. Passwords, hidden controls
and texts that only repeat others for the eye (`aria-hidden`) are left out.
"""

import re
from collections.abc import Callable, Iterator

from lxml import etree

from rag_assets.parsing.flow import link_suffix, unwrap
from rag_assets.parsing.markup.mathematics import EXPONENT, formula_text
from rag_assets.parsing.office.styles import format_number
from rag_assets.text.plain import one_line

SKIPPED = {"script", "style", "template", "head", "noscript", "object", "iframe", "datalist", "rp", "rt"}
INLINE = {
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "button", "cite", "code", "data", "del", "dfn", "em", "font",
    "i", "img", "input", "ins", "kbd", "label", "mark", "math", "meter", "output", "picture", "progress", "q", "rb",
    "ruby", "s", "samp", "select", "small", "source", "span", "strike", "strong", "sub", "sup", "svg", "textarea",
    "time", "tt", "u", "var", "wbr",
}  # fmt: skip
BREAK = "\ufdd0"  # no characters: no text holds them
_PICTURE, _PICTURE_END = "\ufdd1", "\ufdd2"
UNWANTED = dict.fromkeys(map(ord, ("\x00", BREAK, _PICTURE, _PICTURE_END)))
_PICTURES = re.compile(f"{_PICTURE}([^{_PICTURE_END}]*){_PICTURE_END}")
_PICTURE_ALONE = re.compile(f"{_PICTURES.pattern}( <[^<>]*>)?\\s*")
_LINES = ("p", "div", "li", "tr", "ul", "ol", "dl", "dt", "dd", "table")
_HIDING_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|mso-hide\s*:\s*all)")
_BACK_REFERENCE = re.compile(r"(?:^|[\s-])(?:footnote-backref|footnote-back|doc-backlink)(?:\s|$)")
_LIST_WITHOUT_NUMBERS = re.compile(r"list-style(?:-type)?\s*:[^;]*none")
_LIST_FORMATS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
_STRUCK = ("s", "strike", "del")
_WORDLESS = {"style", "script", "title", "desc", "metadata"}  # parts of a drawing that are not shown
_BUTTONS = {"submit", "reset", "button"}
_SILENT_INPUTS = {"hidden", "password"}
_MARKS = {("checkbox", True): "☑", ("checkbox", False): "☐", ("radio", True): "◉", ("radio", False): "○"}


def inline_text(element: etree._Element) -> str:
    """Text of an element as displayed: spaces collapsed, breaks kept, readings of ruby left out (`markup` has them)."""
    return describe_pictures(collapse("".join(texts(element))))


def collapse(text: str) -> str:
    """A gathered text with its spaces collapsed; a line for each part between breaks."""
    return "\n".join(line for line in (unwrap(line) for line in text.split(BREAK)) if line)


def describe_pictures(text: str) -> str:
    """A text with its pictures in words."""
    return _PICTURES.sub(r"[図: \1]", text)


def captions(text: str) -> list[str]:
    """Captions of a collapsed text that holds nothing but pictures; none where it holds more."""
    if _PICTURE_ALONE.sub("", text):
        return []
    return [f"図: {match[1]}{match[2] or ''}" for match in _PICTURE_ALONE.finditer(text)]


def texts(element: etree._Element, *, marks_hidden: bool = True) -> Iterator[str]:
    """Texts of an element as gathered, to be joined and collapsed.

    Args:
        element: The element.
        marks_hidden: Whether what is hidden within it is marked as such.
    """
    stack: list[etree._Element | str] = [element]
    numbers: dict[etree._Element, int] = {}
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
            continue
        yield item_label(item, numbers) if item.tag == "li" and item is not element else ""
        yield item.text or ""
        for child in reversed(item):
            tag = child.tag if isinstance(child.tag, str) else ""
            stack.append(child.tail or "")
            if tag in ("td", "th"):
                stack.append(" ")
            if tag in _LINES or tag == "br":
                stack.append(BREAK)
            if (text := special_text(child, marks_hidden=marks_hidden)) is not None:
                stack.append(text)
            else:
                stack += [link(child), child]
            if tag in _LINES:
                stack.append(BREAK)


def special_text(element: etree._Element, *, marks_hidden: bool = True) -> str | None:
    """What an element says that is not the text it holds; None for other elements."""
    tag = element.tag if isinstance(element.tag, str) else ""
    if not tag or tag in SKIPPED or _is_redundant(element):
        return ""
    if marks_hidden and is_hidden(element):
        return f"（非表示: {text}）" if (text := hidden_text(element)) else ""
    reader = _SPECIAL.get(tag)
    return reader(element) if reader else None


def is_hidden(element: etree._Element) -> bool:
    """Whether an element states that it is not shown."""
    if element.tag == "dialog" and element.get("open") is None:
        return True
    return element.get("hidden") is not None or bool(_HIDING_STYLE.search((element.get("style") or "").lower()))


def hidden_text(element: etree._Element) -> str:
    """Text of an element that is not shown; what is hidden within it once more is not told apart."""
    return "" if element.tag in _SPECIAL else describe_pictures(collapse("".join(texts(element, marks_hidden=False))))


def item_label(item: etree._Element, numbers: dict[etree._Element, int]) -> str:
    """What stands before an item of a list: its number, as in `3. `, or the box of a task; empty for other lists.

    Args:
        item: The item; those of a list must be given in their order.
        numbers: Next number of each list met so far; it is changed.
    """
    if item.get("data-inline-task-id") is not None:
        return f"{_MARKS['checkbox', 'checked' in (item.get('class') or '').split()]} "
    parent = item.getparent()
    if parent is None or parent.tag != "ol" or _LIST_WITHOUT_NUMBERS.search(parent.get("style") or ""):
        return ""
    step = 1 if parent.get("reversed") is None else -1
    first = 1 if step > 0 or parent in numbers else len(parent.findall("li"))
    number = whole(item.get("value"), numbers.get(parent, whole(parent.get("start"), first)))
    numbers[parent] = number + step
    return f"{format_number(number, _LIST_FORMATS.get(parent.get('type') or '', 'decimal'))}. "


def whole(value: str | None, default: int) -> int:
    """A whole number of up to nine digits as stated; the default where there is none."""
    return int(value) if value and re.fullmatch(r"\s*-?[0-9]{1,9}\s*", value) else default


def link(element: etree._Element) -> str:
    """What stands behind an element that is a link: its target."""
    target = element.get("href") if element.tag == "a" else None
    return link_suffix("".join(map(str, element.itertext())), target) if target else ""


def svg_lines(drawing: etree._Element) -> list[str]:
    """Texts of a drawing (SVG), each as one line; also what stands loose in it, as in one that is never closed."""
    lines = []
    stack: list[etree._Element | str] = [drawing]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            lines.append(unwrap(item))
        elif item.tag in ("text", "foreignobject"):
            parts = (unwrap(str(part)) for part in item.itertext())
            lines.append(" ".join(filter(None, parts)))
        elif item.tag not in _WORDLESS:
            for child in reversed(item):
                stack += [child.tail or "", child]
            stack.append(item.text or "")
    return [line for line in lines if line]


def _svg_text(drawing: etree._Element) -> str:
    description = drawing.get("aria-label") or drawing.findtext("title") or drawing.findtext("desc") or ""
    return " ".join(svg_lines(drawing)) or ("" if drawing.get("aria-hidden") == "true" else _picture(description))


def _is_redundant(element: etree._Element) -> bool:
    """Whether an element leads back from a footnote, or is a part of a line that repeats another for the eye."""
    if element.tag == "a" and _BACK_REFERENCE.search(f"{element.get('class') or ''} {element.get('role') or ''}"):
        return True
    return element.get("aria-hidden") == "true" and element.tag in INLINE and element.tag != "svg"


def _picture(description: str) -> str:
    """Alternative text of a picture, marked as such; nothing where it has none."""
    text = one_line(description)
    return f"{_PICTURE}{text}{_PICTURE_END}" if text else ""


def _input_text(element: etree._Element) -> str:
    kind = (element.get("type") or "text").strip().lower()
    if kind in _SILENT_INPUTS:
        return ""
    if kind == "image":
        return _picture(element.get("alt") or "")
    # A label around it or one that names it is read where it stands.
    is_labelled = element.get("id") is not None or next(element.iterancestors("label"), None) is not None
    label = "" if kind in _BUTTONS or is_labelled else element.get("aria-label") or element.get("title") or ""
    if mark := _MARKS.get((kind, element.get("checked") is not None)):
        return f" {mark} {label} "
    value = element.get("value") or element.get("placeholder") or ""
    return f" {label}: {value} " if label and value else f" {label or value} "


def _options_text(element: etree._Element) -> str:
    options = list(element.iter("option"))
    is_multiple = element.get("multiple") is not None
    selection = {option for option in options if option.get("selected") is not None}
    if not selection and not is_multiple:
        selection = set(options[:1])
    kind = "checkbox" if is_multiple else "radio"
    choices = (f"{_MARKS[kind, option in selection]} {option.get('label') or option.text or ''}" for option in options)
    return f" {' '.join(choices)} "


def _raised_text(element: etree._Element) -> str | None:
    """An exponent of a number behind `^`, so that the two do not read as one number; None for other raised text."""
    before, parent = element.getprevious(), element.getparent()
    text = (before.tail if before is not None else parent.text if parent is not None else "") or ""
    power = "".join(map(str, element.itertext())).strip()
    return f"^{power}" if text[-1:].isdecimal() and EXPONENT.fullmatch(power) and element.find("a") is None else None


def _struck_text(element: etree._Element) -> str | None:
    """Struck text as `~~text~~`; None where it holds blocks, or is within struck text already."""
    if any(child.tag in _LINES for child in element) or next(element.iterancestors(*_STRUCK), None) is not None:
        return None
    content = "".join(texts(element))
    return f"~~{content}~~" if content.strip() else content


_SPECIAL: dict[str, Callable[[etree._Element], str | None]] = {
    "img": lambda element: _picture(element.get("alt") or element.get("title") or ""),
    "input": _input_text,
    "select": _options_text,
    "textarea": lambda area: f" {BREAK.join((area.text or area.get('placeholder') or '').splitlines())} ",
    "math": lambda element: f" {formula_text(element)} ",
    "sup": _raised_text,
    **dict.fromkeys(_STRUCK, _struck_text),
    "svg": _svg_text,
}
