"""The closed list of entity types, in words for a model and in head nouns for the extractive algorithm."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path

from rag_assets.contracts.errors import SettingsError
from rag_assets.contracts.fingerprint import digest
from rag_assets.text.folding import fold_name

TERM = "term"
PRODUCT = "product_or_system"
IDENTIFIER = "identifier"

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_KEYS = frozenset({"ja", "en", "endings", "names"})
_LISTS = ("endings", "names")
_ASCII_WORD = re.compile(r"(?<![a-z])[a-z]+$")
_VERSION = re.compile(r" v?\d[\w.]*$")
_TRAILING = re.compile(r"[\s\d①-⑳()（）._\-]+$|[(（][^()（）]*[)）]$")


@dataclass(frozen=True)
class EntityType:
    """A type of entity."""

    name: str
    descriptions: Mapping[str, str]  # what belongs to it, by language
    endings: tuple[str, ...]  # folded head nouns that show it
    names: tuple[str, ...] = ()  # folded names that are of this type wherever they stand

    def describe(self, language: str) -> str:
        """What belongs to it, in a language or in English."""
        return self.descriptions.get(language) or self.descriptions["en"]


@dataclass(frozen=True)
class EntityTypes:
    """The types that entities may have, in the order of the list."""

    types: tuple[EntityType, ...]  # the types; `term`, the one for all else, is among them

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the types."""
        return tuple(entity_type.name for entity_type in self.types)

    @cached_property
    def digest(self) -> str:
        """Digest of the list."""
        return digest(*((t.name, tuple(sorted(t.descriptions.items())), t.endings, t.names) for t in self.types))

    @cached_property
    def _by_ending(self) -> Mapping[str, str]:
        names_by_ending: dict[str, str] = {}
        for entity_type in self.types:
            for ending in entity_type.endings:
                names_by_ending.setdefault(ending, entity_type.name)
        return names_by_ending

    @cached_property
    def _by_name(self) -> Mapping[str, str]:
        return {name: entity_type.name for entity_type in reversed(self.types) for name in entity_type.names}

    def of_name(self, name: str) -> str | None:
        """Type of a name that the list knows as a whole, but for the number of a version, or None."""
        key = fold_name(name)
        return self._by_name.get(key) or self._by_name.get(_VERSION.sub("", key))

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._by_ending), default=0)

    def of_ending(self, name: str) -> str | None:
        """Type that the head noun of a name shows, or None.

        What stands behind it in brackets, and its number, is passed over.
        """
        key = _TRAILING.sub("", fold_name(name))
        last_word = _ASCII_WORD.search(key)
        if last_word:
            whole = last_word[0] == key
            return None if whole else self._by_ending.get(last_word[0])
        for length in range(min(self._longest, len(key)), 0, -1):
            ending = key[-length:]
            if ending in self._by_ending and (length < len(key) or length > 2):
                return self._by_ending[ending]
        return None


@cache
def load_types(extension: Path | None = None) -> EntityTypes:
    """The default types, with those of a file added; a type of the same name replaces the default one.

    The file has the form of `entity_types.toml`; a table with `remove = true` takes a type out.

    Raises:
        SettingsError: The file cannot be read or is not of that form; the message names file and table.
    """
    built_in = Path(str(files("rag_assets") / "graph" / "entity_types.toml"))
    tables = dict(_read(built_in))
    if extension is not None:
        for name, table in _read(extension).items():
            if table == {"remove": True}:
                if name == TERM or name not in tables:
                    raise SettingsError(f"{extension}: [{name}] remove: there is no such type that could go")
                del tables[name]
            else:
                tables[name] = table
    path = extension or built_in
    return EntityTypes(tuple(_entity_type(path, name, table) for name, table in tables.items()))


def _read(path: Path) -> dict[str, dict[str, object]]:
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path}: {error}") from error
    for name, table in tables.items():
        if not _NAME.fullmatch(name) or not isinstance(table, dict):
            raise SettingsError(f"{path}: expected tables named in lower-case letters, digits and _, found {name!r}")
    return tables


def _entity_type(path: Path, name: str, table: Mapping[str, object]) -> EntityType:
    descriptions = {language: table[language] for language in ("ja", "en") if language in table}
    if unknown := table.keys() - _KEYS:
        raise SettingsError(f"{path}: [{name}]: expected {sorted(_KEYS)}, found {sorted(unknown)}")
    if "en" not in descriptions or not all(isinstance(text, str) and text for text in descriptions.values()):
        raise SettingsError(f'{path}: [{name}]: expected a description en = "..." (and ja)')
    lists: list[tuple[str, ...]] = []
    for key in _LISTS:
        texts = table.get(key, [])
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise SettingsError(f'{path}: [{name}]: expected {key} = ["..."]')
        lists.append(tuple(filter(None, (fold_name(text) for text in texts))))
    return EntityType(name, {key: str(text) for key, text in descriptions.items()}, *lists)
