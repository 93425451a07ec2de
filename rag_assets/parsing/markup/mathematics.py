"""Formulas of Office documents (OMML) and of web pages (MathML) in one line: `(a+b)/2`, `x_i^2`, `√(x+1)`.

The signs are those of the nearly plain-text form of the Unicode Technical Note 28, so that a formula can be read and
searched as people write it.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from lxml import etree

from rag_assets.parsing.archive import local_name
from rag_assets.parsing.office.styles import value_of
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import GREEK

EXPONENT = re.compile(r"[-−–+]?\d+")  # of a number in running text, where it is raised
_DEEPEST = 100
_ATOM = re.compile(rf"[^\w\s]?\w\u0305?|[\d.,]*\d|[^\W\d_A-Za-z{GREEK}]+|[^\W\d_][\u0300-\u036f\u20d0-\u20ff]")
_INVISIBLE = dict.fromkeys(range(0x2061, 0x2065))
_ACCENTS = {"^": "\u0302", "ˆ": "\u0302", "~": "\u0303", "˜": "\u0303", "¯": "\u0305", "‾": "\u0305", "_": "\u0305",
            "→": "\u20d7", "⃗": "\u20d7", "˙": "\u0307", ".": "\u0307", "¨": "\u0308", "ˇ": "\u030c"}  # fmt: skip
_LARGE = "∑∏∐∫∬∭∮∯∰⋃⋂⋁⋀⨁⨂"
_LIMITS = {"lim", "max", "min", "sup", "inf", "argmax", "argmin", "arg max", "arg min", "lim sup", "lim inf"}
_ROOTS = {"3": "∛", "4": "∜"}
_ROOT_SIGNS = "√∛∜"


def formula_text(formula: etree._Element) -> str:
    """A formula in one line.

    Args:
        formula: An element of OMML (`oMath`, `oMathPara`) or of MathML (`math`).
    """
    return one_line(_linear(formula, 0))


def _linear(element: etree._Element, depth: int) -> str:
    """An element in linear form; deeper than any formula goes, the texts alone."""
    if depth > _DEEPEST:
        return "".join(map(str, element.itertext()))
    name = local_name(element)
    if name.endswith("Pr") or name in _SKIPPED:
        return ""
    if name in _TEXTS:
        return " ".join("".join(map(str, element.itertext())).translate(_INVISIBLE).split("\n")).replace("\u00a0", " ")
    reader = _READERS.get(name)
    return reader(element, depth + 1) if reader else _row(_elements(element), depth + 1)


def _row(elements: Sequence[etree._Element], depth: int) -> str:
    """Elements side by side, with spaces where two of them would read as one."""
    text, is_open = "", False
    for element in elements:
        part = _linear(element, depth)
        is_built = local_name(element) in _READERS and local_name(element) not in _CLOSED
        if text and part and (is_open or is_built) and _run_together(text[-1], part[0]):
            text += " "
        text += part
        is_open = (is_built or (not part and is_open)) and bool(text)
    return text


def _run_together(before: str, behind: str) -> bool:
    return (before.isalnum() or before == ")") and (behind.isalnum() or behind in _ROOT_SIGNS or behind in _LARGE)


def _elements(element: etree._Element) -> list[etree._Element]:
    return [child for child in element if isinstance(child.tag, str)]


def _parts(element: etree._Element, depth: int, *names: str) -> list[str]:
    """Parts of an OMML element in linear form; empty for those that it lacks."""
    children = (element.find(f"{{*}}{name}") for name in names)
    return ["" if child is None else _linear(child, depth).strip() for child in children]


def _operands(element: etree._Element, depth: int, count: int) -> list[str]:
    """The first parts of a MathML element in linear form, so many; empty for those that it lacks."""
    operands = [_linear(child, depth).strip() for child in _elements(element)]
    return (operands + [""] * count)[:count]


def _setting(element: etree._Element, name: str, default: str = "") -> str:
    """Value of a property of an OMML element; the default where it is not stated."""
    setting = element.find(f"{{*}}{local_name(element)}Pr/{{*}}{name}")
    return default if setting is None else value_of(setting)


def _grouped(text: str) -> str:
    """A text in parentheses, unless it is one number, one sign, one word or in parentheses already."""
    text = text.strip()
    return text if not text or _ATOM.fullmatch(text) or _is_enclosed(text) else f"({text})"


def _is_enclosed(text: str) -> bool:
    depth = 0
    for place, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return place == len(text) - 1 and place > 0
    return False


def _fraction(above: str, below: str) -> str:
    return f"{_grouped(above)}/{_grouped(below)}"


def _scripts(base: str, below: str, above: str = "") -> str:
    base = base if base in _LIMITS or not base.strip() or base.strip() in _LARGE else _grouped(base)
    return base + (f"_{_grouped(below)}" if below.strip() else "") + (f"^{_grouped(above)}" if above.strip() else "")


def _root(inside: str, degree: str) -> str:
    degree = degree.strip()
    sign = _ROOTS.get(degree, f"√[{degree}]" if degree and degree != "2" else "√")
    return sign + (inside if re.fullmatch(r"\w", inside) else f"({inside})" if not _is_enclosed(inside) else inside)


def _accent(base: str, sign: str) -> str:
    """A base under an accent, which combines with a single character alone."""
    base, sign = base.strip(), _ACCENTS.get(sign.strip(), sign.strip())
    return base + sign if len(base) == 1 else f"{_grouped(base)}{sign}"


def _matrix(rows: Iterable[Iterable[etree._Element]], depth: int) -> str:
    return f"[{'; '.join(', '.join(_linear(cell, depth).strip() for cell in row) for row in rows)}]"


def _office_fraction(element: etree._Element, depth: int) -> str:
    above, below = _parts(element, depth, "num", "den")
    return f"({above}¦{below})" if _setting(element, "type") == "noBar" else _fraction(above, below)


def _office_prescripts(element: etree._Element, depth: int) -> str:
    base, below, above = _parts(element, depth, "e", "sub", "sup")
    return f"{_scripts('', below, above)} {base}"


def _office_large(element: etree._Element, depth: int) -> str:
    below, above, inside = _parts(element, depth, "sub", "sup", "e")
    return f"{_scripts(_setting(element, 'chr', '∫'), below, above)} {inside}"


def _office_delimited(element: etree._Element, depth: int) -> str:
    inside = [_linear(part, depth).strip() for part in element.iterfind("{*}e")]
    if len(inside) == 1 and len(element.findall("{*}e/{*}m")) == 1 and _is_enclosed(inside[0]):
        inside = [inside[0][1:-1]]
    begin, end = _setting(element, "begChr", "("), _setting(element, "endChr", ")")
    return f"{begin}{_setting(element, 'sepChr', '|').join(inside)}{end}"


def _office_function(element: etree._Element, depth: int) -> str:
    name, argument = _parts(element, depth, "fName", "e")
    return name + argument if _is_enclosed(argument) else f"{name} {argument}"


def _office_limit(element: etree._Element, depth: int) -> str:
    base, limit = _parts(element, depth, "e", "lim")
    return _scripts(base, limit, "") if local_name(element) == "limLow" else _scripts(base, "", limit)


def _office_accent(element: etree._Element, depth: int) -> str:
    if local_name(element) == "bar":
        sign = "¯" if _setting(element, "pos") == "top" else "\u0332"
    else:
        sign = _setting(element, "chr", "\u0302")
    (base,) = _parts(element, depth, "e")
    return _accent(base, sign)


def _office_array(element: etree._Element, depth: int) -> str:
    lines = (_linear(line, depth).replace("&", "").strip() for line in element.iterfind("{*}e"))
    return "; ".join(line for line in lines if line)


def _office_lines(element: etree._Element, depth: int) -> str:
    return "; ".join(filter(None, (_linear(formula, depth).strip() for formula in _elements(element))))


def _web_fraction(element: etree._Element, depth: int) -> str:
    above, below = _operands(element, depth, 2)
    bare = (element.get("linethickness") or "").strip() in {"0", "0px", "0pt"}
    return f"({above}¦{below})" if bare else _fraction(above, below)


def _web_above(element: etree._Element, depth: int) -> str:
    base, above = _operands(element, depth, 2)
    if local_name(element) == "mover" and above in _ACCENTS:
        return _accent(base, above)
    return _scripts(base, "", above)


def _web_fenced(element: etree._Element, depth: int) -> str:
    parts = [_linear(child, depth).strip() for child in _elements(element)]
    separator = (element.get("separators") or ",").strip()[:1]
    return f"{element.get('open') or '('}{separator.join(parts)}{element.get('close') or ')'}"


_SKIPPED = {"annotation", "annotation-xml", "mphantom", "none", "mprescripts", "delText", "instrText"}
_TEXTS = {"t", "mi", "mn", "mo", "mtext", "ms"}
_CLOSED = {"d", "mfenced", "oMath", "semantics"}
_READERS: dict[str, Callable[[etree._Element, int], str]] = {
    "f": _office_fraction,
    **dict.fromkeys(("sSub", "sSup", "sSubSup"), lambda e, depth: _scripts(*_parts(e, depth, "e", "sub", "sup"))),
    "sPre": _office_prescripts,
    "rad": lambda e, depth: _root(*_parts(e, depth, "e", "deg")),
    "nary": _office_large,
    "d": _office_delimited,
    "func": _office_function,
    "limLow": _office_limit,
    "limUpp": _office_limit,
    "acc": _office_accent,
    "bar": _office_accent,
    "m": lambda e, depth: _matrix((row.iterfind("{*}e") for row in e.iterfind("{*}mr")), depth),
    "eqArr": _office_array,
    "oMathPara": _office_lines,
    "mfrac": _web_fraction,
    **dict.fromkeys(("msub", "munder"), lambda e, depth: _scripts(*_operands(e, depth, 2))),
    "msup": _web_above,
    "mover": _web_above,
    **dict.fromkeys(("msubsup", "munderover"), lambda e, depth: _scripts(*_operands(e, depth, 3))),
    "msqrt": lambda e, depth: _root(_row(_elements(e), depth).strip(), ""),
    "mroot": lambda e, depth: _root(*_operands(e, depth, 2)),
    "mfenced": _web_fenced,
    "mtable": lambda e, depth: _matrix((row.iterfind("{*}mtd") for row in e.iter("{*}mtr", "{*}mlabeledtr")), depth),
    "semantics": lambda e, depth: _row(_elements(e)[:1], depth),
}
