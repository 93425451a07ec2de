"""What the styles and the numbering of a Word document say about a paragraph: heading level, list, caption, label."""

import re
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, replace

from lxml import etree

from rag_assets.parsing.archive import Archive

_HEADING_NAME = re.compile(r"^(?:heading|見出し)\s*([1-9])$", re.IGNORECASE)
_CONTENTS_NAME = re.compile(r"(?:toc|目次)\s*[1-9]")
_TITLE_NAMES = {"title", "表題"}
_CAPTION_NAMES = {"caption", "図表番号"}
_DEEPEST_LEVEL = 9
_UNCOUNTED = {"bullet", "none"}
_FIRST_ROW = 0x20
_USUAL_HALF_POINTS = 20  # of letters, where nothing tells their size
_ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_LAST_LETTERS, _LAST_ROMAN = 780, 32767  # where Word ends
_KANA_ORDER = "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン"
_IROHA_ORDER = "イロハニホヘトチリヌルヲワカヨタレソツネナラムウヰノオクヤマケフコエテアサキユメミシヱヒモセス"
_IDEOGRAPHS = "〇一二三四五六七八九"


@dataclass(frozen=True, slots=True)
class Style:
    """What a paragraph's properties say, those of its styles included."""

    level: int = 0  # level of the heading, from 1; 0 for other paragraphs
    is_caption: bool = False
    is_contents: bool = False  # whether it is one of the lines of a table of contents
    numbering: str = ""  # identifier of its numbering; empty where it has none
    numbering_level: int = 0  # level in the numbering, from 0
    is_hidden: bool = False
    sets_off_first_row: bool = False  # whether it is one of tables and has a look for the first row
    is_bold: bool = False
    size: int = 0  # of its letters, in half points; 0 where it tells none


@dataclass(frozen=True, slots=True)
class _Level:
    """A level of a numbering."""

    start: int = 1  # first number
    number_format: str = "decimal"  # as in `decimal`
    pattern: str = ""  # label with `%1` to `%9` for the numbers of the levels


class Styles:
    """Styles and numbering of a document; labels must be asked for in the order of the text.

    Args:
        archive: The document's archive.
        parts: Names of the parts `styles` and `numbering`, where there are any.
    """

    def __init__(self, archive: Archive, parts: dict[str, str]) -> None:
        self._levels: dict[str, dict[int, _Level]] = {}
        self._abstract: dict[str, str] = {}
        self._restarts: dict[str, dict[int, int]] = {}
        self._counts: dict[str, dict[int, int]] = defaultdict(dict)
        self._style_levels: dict[tuple[str, str], int] = {}
        if archive.has(parts.get("numbering", "")):
            self._read_numbering(archive.tree(parts["numbering"]))
        self._styles: dict[str, Style] = {}
        self.default_size = _USUAL_HALF_POINTS
        if archive.has(parts.get("styles", "")):
            root = archive.tree(parts["styles"])
            styles = list(root.iterfind("{*}style"))
            elements = {identifier: style for style in styles if (identifier := attribute(style, "styleId"))}
            self._styles = {identifier: self._resolve(identifier, elements, 0) for identifier in elements}
            default_size = integer(root.find("{*}docDefaults/{*}rPrDefault/{*}rPr/{*}sz"), _USUAL_HALF_POINTS)
            usual = next(
                (
                    style
                    for style in styles
                    if attribute(style, "default") == "1" and attribute(style, "type") == "paragraph"
                ),
                None,
            )
            self.default_size = self._styles.get(attribute(usual, "styleId"), Style()).size or default_size

    def of(self, properties: etree._Element | None) -> Style:
        """What the properties of a paragraph say."""
        if properties is None:
            return Style()
        style = self._styles.get(value_of(properties.find("{*}pStyle")), Style())
        outline = properties.find("{*}outlineLvl")
        if outline is not None:
            style = replace(style, level=_outline_level(outline))
        if (numbering := properties.find("{*}numPr/{*}numId")) is not None:
            level = _list_level(properties.find("{*}numPr/{*}ilvl"), style.numbering_level)
            style = replace(style, numbering=_numbering(numbering), numbering_level=level)
        return style

    def sets_off_first_row(self, properties: etree._Element | None) -> bool:
        """Whether a table of these properties has a first row in a look of its own, by its style."""
        if (
            properties is None
            or not self._styles.get(value_of(properties.find("{*}tblStyle")), Style()).sets_off_first_row
        ):
            return False
        look = properties.find("{*}tblLook")
        if attribute(look, "firstRow") in ("1", "true"):
            return True
        with suppress(ValueError):
            return int(value_of(look), 16) & _FIRST_ROW != 0
        return False

    def hides(self, properties: etree._Element | None, style: Style) -> bool:
        """Whether a run is hidden, by its own properties, its style, or the style of its paragraph."""
        if properties is None:
            return style.is_hidden
        character_style = self._styles.get(value_of(properties.find("{*}rStyle")), Style())
        return is_on(properties.find("{*}vanish"), default=character_style.is_hidden or style.is_hidden)

    def is_counted(self, style: Style) -> bool:
        """Whether paragraphs of a style are numbered, and not only marked."""
        levels = self._levels.get(self._abstract.get(style.numbering, ""), {})
        level = levels.get(style.numbering_level)
        return level is not None and level.number_format not in _UNCOUNTED

    def label(self, style: Style) -> str:
        """Number of the next paragraph of a style, as in `1.2`; empty for bullets and for none."""
        abstract = self._abstract.get(style.numbering, "")
        levels = self._levels.get(abstract)
        if not levels:
            return ""
        counts, depth = self._counts[abstract], style.numbering_level
        restarts = self._restarts.get(style.numbering, {})
        for above in range(depth):
            if above not in counts:  # as Word and LibreOffice do, which count it as used
                counts[above] = restarts.pop(above, levels.get(above, _Level()).start)
        if depth in restarts:
            counts[depth] = restarts.pop(depth)
        else:
            counts[depth] = counts.get(depth, levels.get(depth, _Level()).start - 1) + 1
        for deeper in [level for level in counts if level > depth]:
            del counts[deeper]

        def number(match: re.Match[str]) -> str:
            level = int(match[1]) - 1
            definition = levels.get(level, _Level())
            return format_number(counts.get(level, definition.start), definition.number_format)

        current = levels.get(depth, _Level())
        has_label = current.number_format not in _UNCOUNTED
        return re.sub(r"%([1-9])", number, current.pattern).strip() if has_label else ""

    def _resolve(self, identifier: str, elements: dict[str, etree._Element], depth: int) -> Style:
        element = elements.get(identifier)
        if element is None or depth > 20:
            return Style()
        style = self._resolve(value_of(element.find("{*}basedOn")), elements, depth + 1)
        name = value_of(element.find("{*}name")).lower()
        outline = element.find("{*}pPr/{*}outlineLvl")
        if heading := _HEADING_NAME.match(name):
            style = replace(style, level=int(heading[1]))
        elif name in _TITLE_NAMES:
            style = replace(style, level=1)
        elif outline is not None:
            style = replace(style, level=_outline_level(outline))
        if (numbering := element.find("{*}pPr/{*}numPr/{*}numId")) is not None:
            style = replace(style, numbering=_numbering(numbering))
        level = element.find("{*}pPr/{*}numPr/{*}ilvl")
        linked_level = self._style_levels.get((self._abstract.get(style.numbering, ""), identifier))
        if linked_level is not None or level is not None:
            style = replace(style, numbering_level=linked_level if linked_level is not None else _list_level(level, 0))
        is_hidden = is_on(element.find("{*}rPr/{*}vanish"), default=style.is_hidden)
        has_first = any(attribute(part, "type") == "firstRow" for part in element.iterfind("{*}tblStylePr"))
        return replace(
            style,
            is_caption=style.is_caption or name in _CAPTION_NAMES,
            is_contents=style.is_contents or _CONTENTS_NAME.fullmatch(name) is not None,
            is_hidden=is_hidden,
            sets_off_first_row=style.sets_off_first_row or has_first,
            is_bold=is_on(element.find("{*}rPr/{*}b"), default=style.is_bold),
            size=integer(element.find("{*}rPr/{*}sz"), style.size),
        )

    def _read_numbering(self, root: etree._Element) -> None:
        """Read the numberings; one that only names a style has the levels, and counts with, the one of that style."""
        definitions: dict[str, str] = {}
        links: dict[str, str] = {}
        for abstract in root.iterfind("{*}abstractNum"):
            identifier = attribute(abstract, "abstractNumId")
            definitions[value_of(abstract.find("{*}styleLink"))] = identifier
            links[identifier] = value_of(abstract.find("{*}numStyleLink"))
            levels = self._levels.setdefault(identifier, {})
            for level in abstract.iterfind("{*}lvl"):
                depth = _list_level(level, 0, "ilvl")
                number_format = value_of(level.find("{*}numFmt")) or "decimal"
                first, pattern = integer(level.find("{*}start"), 1), value_of(level.find("{*}lvlText"))
                levels[depth] = _Level(first, number_format, pattern)
                if style := value_of(level.find("{*}pStyle")):
                    self._style_levels[identifier, style] = depth
        for number in root.iterfind("{*}num"):
            identifier = attribute(number, "numId")
            abstract_identifier = value_of(number.find("{*}abstractNumId"))
            link = links.get(abstract_identifier, "")
            self._abstract[identifier] = definitions.get(link, abstract_identifier) if link else abstract_identifier
            self._restarts[identifier] = {
                _list_level(override, 0, "ilvl"): integer(start, 1)
                for override in number.iterfind("{*}lvlOverride")
                if (start := override.find("{*}startOverride")) is not None
            }


def attribute(element: etree._Element | None, name: str) -> str:
    """Value of an attribute in whatever namespace; empty where it, or the element, is missing."""
    for key, value in () if element is None else element.attrib.items():
        if str(key).rpartition("}")[2] == name:
            return str(value)
    return ""


def value_of(element: etree._Element | None) -> str:
    """The `val` of an element; empty where it, or the element, is missing."""
    return attribute(element, "val")


def integer(element: etree._Element | None, default: int, name: str = "val") -> int:
    """An attribute as a whole number of up to nine digits; the default where it is missing or none."""
    value = attribute(element, name)
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else default


def is_on(switch: etree._Element | None, *, default: bool = False) -> bool:
    """Whether a property that is on or off, as `<w:b/>` or `<w:b w:val="false"/>`, is on."""
    return default if switch is None else value_of(switch) not in ("0", "false", "off")


def is_run_bold(run: etree._Element, *, default: bool = False) -> bool:
    """Whether a run of a document is bold: by itself, else by its style, else as the default has it."""
    is_strong = value_of(run.find("{*}rPr/{*}rStyle")) == "Strong"
    return is_on(run.find("{*}rPr/{*}b"), default=is_strong or default)


def _outline_level(outline: etree._Element) -> int:
    level = integer(outline, _DEEPEST_LEVEL) + 1
    return level if level <= _DEEPEST_LEVEL else 0


def _list_level(element: etree._Element | None, default: int, name: str = "val") -> int:
    """A level of a numbering, from 0; the deepest that Word has for a deeper one."""
    return min(integer(element, default, name), _DEEPEST_LEVEL - 1)


def _numbering(element: etree._Element) -> str:
    return "" if value_of(element) == "0" else value_of(element)


def format_number(number: int, number_format: str) -> str:
    """A number of a list in a format of Word, as in `lowerRoman`; in digits where the format has no sign for it."""
    match number_format:
        case "upperLetter" | "lowerLetter" if 1 <= number <= _LAST_LETTERS:
            letter = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
            return letter.upper() if number_format == "upperLetter" else letter
        case "upperRoman" | "lowerRoman" if number <= _LAST_ROMAN:
            return _roman(number).upper() if number_format == "upperRoman" else _roman(number)
        case "decimalZero":
            return f"{number:02}"
        case "decimalFullWidth" | "decimalFullWidth2":
            return str(number).translate({ord("0") + digit: ord("０") + digit for digit in range(10)})
        case "decimalEnclosedCircle" if 1 <= number <= 20:
            return chr(ord("①") + number - 1)
        case "aiueo" | "aiueoFullWidth" | "iroha" | "irohaFullWidth":
            order = _KANA_ORDER if number_format.startswith("aiueo") else _IROHA_ORDER
            return order[(number - 1) % len(order)]
        case "japaneseCounting" | "ideographDigital" | "chineseCounting" if 1 <= number < 100:
            return _ideographic(number)
        case _:
            return str(number)


def _roman(number: int) -> str:
    letters = ""
    for value, letter in _ROMAN:
        count, number = divmod(number, value)
        letters += letter * count
    return letters


def _ideographic(number: int) -> str:
    tens, units = divmod(number, 10)
    return ("" if tens < 2 else _IDEOGRAPHS[tens]) + ("十" if tens else "") + (_IDEOGRAPHS[units] if units else "")
