"""Taxonomies: the facets by which documents are classified, with the values that each may take.

A taxonomy is a TOML file: those of the package (`office`, `papers`) by name, others by path.
"""

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import NoReturn

from rag_assets.contracts.errors import SettingsError
from rag_assets.contracts.fingerprint import Fact, digest

LANGUAGES = ("ja", "en")
NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MOST_VALUES = 3
_RESERVED = frozenset({"reasoning"})  # stands beside the facets in what a model writes


@dataclass(frozen=True)
class _Named:
    """What people call by a label and explain by a description."""

    name: str  # ASCII id, as in `api_specification`
    labels: tuple[tuple[str, str], ...]  # what people call it, by language (`ja`, `en`)
    # what a facet is about, or what documents a value fits, by language; models read it, and documents are compared
    # with it
    descriptions: tuple[tuple[str, str], ...]

    def label(self, language: str) -> str:
        """What people call it, in Japanese or, for all other languages, English."""
        return dict(self.labels)["ja" if language == "ja" else "en"]

    def description(self, language: str) -> str:
        """The description, in Japanese or, for all other languages, English."""
        return dict(self.descriptions)["ja" if language == "ja" else "en"]


@dataclass(frozen=True)
class Value(_Named):
    """A value of a facet, with words that documents of it carry in titles and headings, all languages together."""

    terms: tuple[str, ...] = ()


@dataclass(frozen=True)
class Facet(_Named):
    """A facet: one respect in which documents differ."""

    values: tuple[Value, ...]
    required: bool = False  # whether every document has at least one of the values
    most_values: int = _MOST_VALUES  # values that one document may have


@dataclass(frozen=True)
class Taxonomy:
    """The facets by which documents are classified."""

    name: str
    facets: tuple[Facet, ...]

    def described(self, values: Sequence[str], language: str) -> str:
        """Facet values as people call them, as in `Type of document "report", Subject "testing"`.

        Each is given as `facet=value`; one that the taxonomy does not have stays as it is.
        """
        quotes, joiner = ("「{}」", "、") if language == "ja" else (' "{}"', ", ")
        parts = []
        for value in values:
            labels = self._labels.get(value)
            parts.append(f"{labels[0].label(language)}{quotes.format(labels[1].label(language))}" if labels else value)
        return joiner.join(parts)

    @cached_property
    def _labels(self) -> dict[str, tuple[Facet, Value]]:
        return {f"{facet.name}={value.name}": (facet, value) for facet in self.facets for value in facet.values}

    @cached_property
    def digest(self) -> str:
        """Digest of all that classification depends on."""
        facts: list[Fact] = []
        for facet in self.facets:
            facts += [facet.name, facet.labels, facet.descriptions, facet.required, facet.most_values]
            facts += [(value.name, value.labels, value.descriptions, value.terms) for value in facet.values]
        return digest(*facts)


def is_shipped(name: str) -> bool:
    """Whether a taxonomy of this name ships with the package; a file or folder of the same name is none."""
    return NAME.fullmatch(name) is not None and (_shipped() / f"{name}.toml").is_file()


def load_taxonomy(name_or_path: str) -> Taxonomy:
    """Read a taxonomy: `office` or `papers`, or the path of a TOML file.

    Raises:
        SettingsError: There is no such taxonomy, or the file is not one; the message says where and why.
    """
    path = Path(name_or_path)
    if is_shipped(name_or_path):
        path = _shipped() / f"{name_or_path}.toml"
    if not path.is_file():
        names = ", ".join(sorted(path.stem for path in _shipped().glob("*.toml")))
        raise SettingsError(f"taxonomy {name_or_path!r}: expected one of {names}, or the path of a TOML file")
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from error
    return parse_taxonomy(text, str(path))


def parse_taxonomy(text: str, place: str) -> Taxonomy:
    """Read a taxonomy from TOML text.

    Messages name the place.

    Raises:
        SettingsError: It is none; the message says where and why.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{place}: not TOML: {error}") from error
    reader = _TaxonomyReader(place)
    reader.refuse_unknown(content, {"name", "facets"}, "")
    facets = tuple(reader.facet(table, index) for index, table in enumerate(reader.tables(content, "facets", "")))
    reader.refuse_repeated([facet.name for facet in facets], "facets")
    name = content.get("name", Path(place).stem)
    if not isinstance(name, str):
        raise SettingsError(f"{place}, name: expected a text, found {name!r}")
    return Taxonomy(name, facets)


def taxonomy_text(taxonomy: Taxonomy, comment: str = "") -> str:
    """A taxonomy as TOML text that `load_taxonomy` reads.

    The comment comes first.
    """
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [f"name = {_quoted(taxonomy.name)}"]
    for facet in taxonomy.facets:
        lines += ["", "[[facets]]", *_named(facet)]
        lines += [f"required = {str(facet.required).lower()}", f"most_values = {facet.most_values}"]
        for value in facet.values:
            lines += ["", "[[facets.values]]", *_named(value)]
            if value.terms:
                lines.append(f"terms = [{', '.join(map(_quoted, value.terms))}]")
    return "\n".join(lines) + "\n"


class _TaxonomyReader:
    """Reads parts of a taxonomy file, and says where one is wrong."""

    def __init__(self, place: str) -> None:
        self._place = place

    def facet(self, content: dict[str, object], index: int) -> Facet:
        where = f"facets[{index}]"
        name = self._name(content, where)
        if name in _RESERVED:
            self._fail(where, "name", "another name", name)
        where = f"facet {name!r}"
        keys = {"name", "label", "description", "required", "most_values", "values"}
        self.refuse_unknown(content, keys, where)
        values = tuple(
            self._value(table, f"{where}, values[{i}]") for i, table in enumerate(self.tables(content, "values", where))
        )
        self.refuse_repeated([value.name for value in values], f"{where}, values")
        required, most = content.get("required", False), content.get("most_values", _MOST_VALUES)
        if not isinstance(required, bool):
            self._fail(where, "required", "true or false", required)
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            self._fail(where, "most_values", "a number from 1", most)
        labels = self._words(content, "label", where)
        return Facet(name, labels, self._words(content, "description", where), values, required, most)

    def _value(self, content: dict[str, object], where: str) -> Value:
        name = self._name(content, where)
        self.refuse_unknown(content, {"name", "label", "description", "terms"}, f"{where} ({name})")
        terms = content.get("terms", [])
        if not isinstance(terms, list) or not all(isinstance(term, str) and term.strip() for term in terms):
            self._fail(where, "terms", "a list of texts", terms)
        labels, descriptions = self._words(content, "label", where), self._words(content, "description", where)
        return Value(name, labels, descriptions, tuple(map(str, terms)))

    def tables(self, content: dict[str, object], key: str, where: str) -> list[dict[str, object]]:
        tables = content.get(key)
        if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
            self._fail(where, key, f"one or more tables [[{key if not where else 'facets.' + key}]]", tables)
        return tables

    def refuse_unknown(self, content: dict[str, object], known: set[str], where: str) -> None:
        if unknown := sorted(content.keys() - known):
            raise SettingsError(f"{self._at(where)}: expected {', '.join(sorted(known))}, found {', '.join(unknown)}")

    def refuse_repeated(self, names: list[str], where: str) -> None:
        if duplicates := sorted({name for name in names if names.count(name) > 1}):
            raise SettingsError(f"{self._at(where)}: {', '.join(duplicates)} stands more than once")

    def _name(self, content: dict[str, object], where: str) -> str:
        name = content.get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            self._fail(where, "name", "lower-case ASCII letters, digits and _, a letter first", name)
        return name

    def _words(self, content: dict[str, object], key: str, where: str) -> tuple[tuple[str, str], ...]:
        """Texts by language; one text stands for all languages."""
        value = content.get(key)
        if isinstance(value, str) and value.strip():
            return tuple((language, value.strip()) for language in LANGUAGES)
        if not isinstance(value, dict) or not value or not all(isinstance(text, str) for text in value.values()):
            self._fail(where, key, "a text, or texts ja and en", value)
        if unknown := sorted(value.keys() - set(LANGUAGES)):
            self._fail(where, key, "languages ja and en", ", ".join(unknown))
        words = {language: str(value.get(language, "")).strip() for language in LANGUAGES}
        fallback = words["en"] or words["ja"]
        if not fallback:
            self._fail(where, key, "a text", value)
        return tuple((language, words[language] or fallback) for language in LANGUAGES)

    def _fail(self, where: str, key: str, expected: str, value: object) -> NoReturn:
        text = "nothing" if value is None else repr(value)
        raise SettingsError(f"{self._at(where)}, {key}: expected {expected}, found {text}".replace(", ,", ","))

    def _at(self, where: str) -> str:
        return f"{self._place}, {where}" if where else self._place


def _named(item: _Named) -> list[str]:
    lines = [f"name = {_quoted(item.name)}"]
    for key, words in (("label", item.labels), ("description", item.descriptions)):
        texts = dict(words)
        if len(set(texts.values())) == 1:
            lines.append(f"{key} = {_quoted(words[0][1])}")
        else:
            lines += [f"{key}.{language} = {_quoted(text)}" for language, text in texts.items()]
    return lines


def _quoted(text: str) -> str:
    """A TOML basic string; JSON's escapes are TOML's, but for the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _shipped() -> Path:
    return Path(str(files("rag_assets") / "enrich" / "taxonomies"))
