"""References from a report to the records that it rests on, as in `[Data: Entities (5, 7); Relationships (23)]`.

They are written like this in reports of every language, so that programs find them.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

ENTITIES = "Entities"
RELATIONSHIPS = "Relationships"

_MOST_IDS = 5
_MORE = "+more"
# also with the full-width signs that a model may put into Japanese text
_REFERENCE = re.compile(r"(\s*)[\[［【]\s*data\s*[:：]([^\[\]［］【】]{0,2000})[\]］】]", re.IGNORECASE)
_RECORDS = re.compile(r"([^\W\d_]+)\s*[(（]([^()（）]*)[)）]")
_BETWEEN_IDS = re.compile(r"[\s,;，、；]+")


@dataclass(frozen=True)
class Records:
    """Records, by the numbers that reports cite."""

    entities: frozenset[int] = frozenset()
    relationships: frozenset[int] = frozenset()

    def __or__(self, other: "Records") -> "Records":
        return Records(self.entities | other.entities, self.relationships | other.relationships)


def reference(entities: Collection[int], relationships: Collection[int] = ()) -> str:
    """A reference to records, of each kind the first five in the order given; empty without any."""
    kinds = ((ENTITIES, entities), (RELATIONSHIPS, relationships))
    parts = [f"{kind} ({_listed(dict.fromkeys(numbers))})" for kind, numbers in kinds if numbers]
    return f"[Data: {'; '.join(parts)}]" if parts else ""


def cited(text: str) -> Records:
    """The records that a text refers to."""
    found: dict[str, set[int]] = {ENTITIES: set(), RELATIONSHIPS: set()}
    for match in _REFERENCE.finditer(text):
        for kind, ids in _RECORDS.findall(match[2]):
            found.get(_kind(kind), set()).update(int(each) for each in _BETWEEN_IDS.split(ids) if each.isdecimal())
    return Records(frozenset(found[ENTITIES]), frozenset(found[RELATIONSHIPS]))


def check_references(text: str, existing: Records) -> tuple[str, int]:
    """Take out references to records that do not exist, and bring the others into one form.

    At most five ids of a kind are left; `+more` stands for the rest. A reference of which nothing is left goes as a
    whole.

    Returns:
        The text, and how many ids were taken out: of records that do not exist, of kinds that there are none of, and
        what is no number; a reference without any id counts as one.
    """
    removed = 0
    known = {ENTITIES: existing.entities, RELATIONSHIPS: existing.relationships}

    def mended(match: re.Match[str]) -> str:
        nonlocal removed
        valid: dict[str, dict[int, None]] = {ENTITIES: {}, RELATIONSHIPS: {}}
        more: set[str] = set()
        named = False
        for name, ids in _RECORDS.findall(match[2]):
            kind = _kind(name)
            for each in filter(None, _BETWEEN_IDS.split(ids)):
                named = True
                if each.lower() == _MORE:
                    more.add(kind)
                elif each.isdecimal() and int(each) in known.get(kind, frozenset()):
                    valid[kind][int(each)] = None
                else:
                    removed += 1
        removed += not named
        parts = [f"{kind} ({_listed(numbers, more=kind in more)})" for kind, numbers in valid.items() if numbers]
        return f"{match[1]}[Data: {'; '.join(parts)}]" if parts else ""

    mended_text = _REFERENCE.sub(mended, text)
    return mended_text, removed


def _kind(name: str) -> str:
    return name.strip().capitalize()


def _listed(numbers: Collection[int], *, more: bool = False) -> str:
    shown = list(map(str, numbers))[:_MOST_IDS]
    return ", ".join([*shown, _MORE] if more or len(numbers) > _MOST_IDS else shown)
