"""Structured conditions on what is searched, and their one translation to Lance SQL.

Values only ever reach SQL as quoted literals. What stays out: conditions on text, which are the search itself.
"""

import fnmatch
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from heapq import nlargest
from typing import Any

import pyarrow as pa

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.formats import formats_called
from rag_assets.store.queries import sql_literal
from rag_assets.store.vectors.store import sql_in

FACETS_COLUMN = "facets"


@dataclass(frozen=True)
class Filters:
    """What a passage must satisfy: each field given, by any one of its values."""

    # document ids. `*` stands for any characters, `/` among them, `?` for one; an id that ends in `/` stands for all
    # that begins with it
    document: tuple[str, ...] = ()
    folder: tuple[str, ...] = ()  # folders; what lies below a folder is in it
    format: tuple[str, ...] = ()  # formats, as in `xlsx`
    language: tuple[str, ...] = ()  # languages, ISO 639-1
    page_name: tuple[str, ...] = ()  # names of sheets; `*` and `?` as above
    # facet values of the document, each as `facet=value`: for each facet named, one of its values
    facet: tuple[str, ...] = ()
    modified_from: datetime | None = None  # files changed at this time or later
    modified_before: datetime | None = None  # files changed before this time
    facet_documents: frozenset[str] = frozenset()  # documents that have the facet values, for tables without them

    def to_sql(self, columns: Collection[str]) -> str | None:
        """The condition in Lance SQL, over the columns that a table has; None where there is none.

        Args:
            columns: Columns of the table that is asked; a condition on another column is left to the table that has it.
        """
        conditions: list[str] = []
        for column, values, translate in (
            ("document_id", self.document, _matches),
            ("folder", self.folder, _below),
            ("format", self.format, _equals),
            ("language", self.language, _equals),
            ("page_name", self.page_name, _matches),
        ):
            if values and column in columns:
                conditions.append(_any(column, values, translate))
        if FACETS_COLUMN in columns:
            conditions += [_any(FACETS_COLUMN, values, _holds) for values in self.facet_values().values()]
        elif self.facet:
            conditions.append(sql_in("document_id", sorted(self.facet_documents)))
        if self.modified_from is not None:
            conditions.append(f"modified_at >= {_timestamp(self.modified_from)}")
        if self.modified_before is not None:
            conditions.append(f"modified_at < {_timestamp(self.modified_before)}")
        return " AND ".join(conditions) or None

    def let_through(self, document: Mapping[str, Any]) -> bool:
        """Whether they let a document through of which nothing was read, so that no passage tells of it.

        Args:
            document: Its `document_id`, `folder`, `format`, `language` and `modified_at`, as in the table of documents.
        """
        time = document["modified_at"]
        is_in_time = (self.modified_from is None or (time is not None and time >= self.modified_from)) and (
            self.modified_before is None or (time is not None and time < self.modified_before)
        )
        return (
            is_in_time
            and not (self.page_name or self.facet)
            and all(
                not (values := getattr(self, name)) or _is_held(name, values, (document[_COLUMNS[name]],))
                for name in _OF_DOCUMENTS
            )
        )

    def facet_values(self) -> dict[str, tuple[str, ...]]:
        """Facet values asked for, each as `facet=value`, by facet."""
        values_by_name: dict[str, tuple[str, ...]] = {}
        for value in self.facet:
            name = value.partition("=")[0]
            values_by_name[name] = (*values_by_name.get(name, ()), value)
        return values_by_name


NO_FILTERS = Filters()
_FACET = "facet."
_COLUMNS = {
    "document": "document_id",
    "folder": "folder",
    "format": "format",
    "language": "language",
    "page_name": "page_name",
}
_OF_DOCUMENTS = ("document", "folder", "format", "language")
_NEVER = "~"  # after every time, as texts stand
_WITH_WILDCARDS = frozenset(("document", "page_name"))
_SHOWN, _SHOWN_CHARS = 20, 200  # of the values that there are, at most
_NEAR = 3  # values that one may stand for, and values asked for that are looked at
_LEAST_RATIO = 0.6  # of two spellings that are near, by `difflib`
_COMPARED = 200  # spellings; those of a large collection would take seconds
_LANGUAGES = {"japanese": "ja", "日本語": "ja", "jp": "ja", "english": "en", "英語": "en"}
Known = Callable[[str], Collection[str]]


def check_filters(filters: Filters, searched: Known, others: Known) -> None:
    """Refuse filters of which one lets nothing through, whatever is searched for; facets are not looked at.

    Args:
        filters: The filters.
        searched: The values of a column among passages; see `texts_of`.
        others: Those among all documents, of which some have no passages; asked where no passage has a value.

    Raises:
        QueryError: The message names the filter, its values, those near them and those that there are.
    """
    for name, column in _COLUMNS.items():
        values: tuple[str, ...] = getattr(filters, name)
        if values and not _is_held(name, values, searched(column)) and not _is_held(name, values, others(column)):
            check_known(name, values, searched(column))
    if filters.modified_from is None and filters.modified_before is None:
        return
    start = _time_text(filters.modified_from) if filters.modified_from else ""
    end = _time_text(filters.modified_before) if filters.modified_before else ""
    times = sorted(searched("modified_at"))
    if not any(
        start <= time < (end or _NEVER) for change_times in (times, others("modified_at")) for time in change_times
    ):
        nearest = [*[time for time in times if time < start][-1:], *[time for time in times if time >= end > ""][:1]]
        seconds = [re.sub(r"\.\d+", "", time) for time in nearest]
        raise QueryError(f"no document has modified {start}..{end}; nearest: {', '.join(seconds) or 'none'}")


def check_known(name: str, values: Collection[str], known: Collection[str]) -> None:
    """Refuse a condition, as on `format`, that nothing can satisfy, as none of its values is there at all.

    Raises:
        QueryError: None of them is known; the message names those near them and those that there are.
    """
    if values and not _is_held(name, values, known):
        statement = "there is no document" if name == "document" else f"no document has {name}"
        raise QueryError(f"{statement} {', '.join(values)}; {there_are(name, values, known)}")


def there_are(name: str, values: Collection[str], known: Collection[str]) -> str:
    """Which values may have been meant by those that are not known, and which there are; for a message."""
    if name == "folder":  # what lies below a folder is in it
        known = {path[: slash.start()] for path in known for slash in re.finditer("/|$", path)}
    near = dict.fromkeys(suggestion for value in [*values][:_NEAR] for suggestion in _suggestions(name, value, known))
    ordered_values = sorted(known)
    shown_values = ordered_values[:1]
    for value in ordered_values[1:_SHOWN]:
        if sum(map(len, shown_values)) + len(value) > _SHOWN_CHARS:
            break
        shown_values.append(value)
    hint = f"did you mean {', '.join(near)}? " if near else ""
    rest = f" and {len(ordered_values) - len(shown_values):,} more" if len(ordered_values) > len(shown_values) else ""
    return f"{hint}there are: {', '.join(shown_values) or 'none'}{rest}"


def texts_of(column: pa.ChunkedArray) -> frozenset[str]:
    """The values of a column of texts or times but empty ones; times in UTC, as texts that stand in their order."""
    values = column.unique().to_pylist()
    return frozenset(_time_text(value) if isinstance(value, datetime) else value for value in values if value)


def _time_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()  # whose sign of the offset stands before a point, as it should


def _is_held(name: str, values: Iterable[str], known_values: Collection[str]) -> bool:
    """Whether something satisfies a condition, as its translation to SQL has it."""
    if name.startswith(_FACET):
        return any(value in known_values for value in values)
    normal = [unicodedata.normalize("NFC", value) for value in values]
    if name in _WITH_WILDCARDS:
        return any(value in known_values or any(map(_glob(_as_glob(value)), known_values)) for value in normal)
    if name == "folder":
        folders = tuple(value.rstrip("/") for value in normal)
        below = tuple(f"{folder}/" for folder in folders)
        return any(folder in folders or folder.startswith(below) for folder in known_values)
    return any(value.strip().lower() in known_values for value in normal)


def _suggestions(name: str, value: str, known_values: Collection[str]) -> list[str]:
    """Values that one may stand for, best first: what it is another name of, a part of, or spelt nearly as."""
    originals = {_fold(known_value): known_value for known_value in sorted(known_values)}
    folded_value = _fold(value).strip("*?/ ")
    near = [text for text in (*formats_called(folded_value), _LANGUAGES.get(folded_value, "")) if text in originals]
    holds, is_part = _glob(f"*{folded_value}*"), _glob(f"*/{folded_value}/*")
    parts = {text: is_part(f"/{text}/") is not None for text in originals if folded_value and holds(text)}
    # one letter stands in too many
    holders = [text for text in parts if parts[text] or len(folded_value) > 1 or not folded_value.isascii()]
    near += sorted(holders, key=lambda text: (not parts[text], len(text), text))[:_NEAR]
    ends = {text.rpartition("/")[2]: text for text in reversed(originals)}
    near += _spelt_like(folded_value, originals)
    near += [ends[ending] for ending in _spelt_like(folded_value.rpartition("/")[2], ends)]
    suggestions = [originals[text] for text in dict.fromkeys(near)][:_NEAR]
    anywhere = f"*/{value}"
    if name in _WITH_WILDCARDS and {"*", "?"}.intersection(value) and _is_held(name, [anywhere], known_values):
        return [anywhere, *suggestions]
    return suggestions


def _spelt_like(text: str, texts: Collection[str]) -> list[str]:
    """Texts that are spelt nearly as one, the nearest first."""
    characters = frozenset(text)
    if len(texts) > _COMPARED:
        texts = nlargest(
            _COMPARED,
            texts,
            lambda other_text: len(characters.intersection(other_text)) / len(characters.union(other_text)),
        )
    return get_close_matches(text, texts, _NEAR, _LEAST_RATIO)


def _as_glob(value: str) -> str:
    """A value of `document` or `page_name` as `_matches` reads it."""
    return f"{value}*" if value.endswith("/") and not {"*", "?"}.intersection(value) else value


def _glob(value: str) -> Callable[[str], re.Match[str] | None]:
    """Tells which texts match a value with the wildcards `*` and `?`, in linear time for each of them."""
    return re.compile(fnmatch.translate(value.replace("[", "[[]"))).match


def _fold(value: str) -> str:
    return unicodedata.normalize("NFC", value).strip().lower()


_FIELDS = (*(item.name for item in fields(Filters) if not item.name.startswith(("modified_", "facet"))), "modified")


def parse_filters(expressions: Iterable[str]) -> Filters:
    """Read filters as typed: `FIELD=VALUE`, the same field again for a further value.

    `modified` takes `FROM..TO`, either side may be missing, or one day: ISO dates (`TO` is included) or times, UTC
    unless they state an offset. `facet.NAME` takes a value of that facet, as in `facet.document_type=report`.

    Raises:
        QueryError: A field is unknown, or a value cannot be read.
    """
    filters = NO_FILTERS
    for expression in expressions:
        name, separator, value = expression.partition("=")
        name = name.strip()
        if not separator or not value.strip():
            raise QueryError(f"filter {expression!r}: expected FIELD=VALUE")
        if name.startswith(_FACET) and len(name) > len(_FACET):
            filters = replace(filters, facet=(*filters.facet, f"{name.removeprefix(_FACET)}={value.strip()}"))
            continue
        if name not in _FIELDS:
            field_names = ", ".join((*_FIELDS, f"{_FACET}NAME"))
            raise QueryError(f"filter {expression!r}: unknown field, expected one of {field_names}")
        if name == "modified":
            filters = _with_range(filters, expression, value.strip())
        else:
            values: tuple[str, ...] = (*getattr(filters, name), value)
            filters = replace(filters, **{name: values})  # type: ignore[arg-type]
    return filters


def _with_range(filters: Filters, expression: str, value: str) -> Filters:
    start, separator, end = value.partition("..")
    if not separator:
        end = start
    try:
        return replace(
            filters,
            modified_from=_moment(start, end_of_day=False) if start else None,
            modified_before=_moment(end, end_of_day=True) if end else None,
        )
    except (ValueError, OverflowError) as error:
        raise QueryError(f"filter {expression!r}: expected dates or times as in 2024-01-31..2024-12-31") from error


def _moment(text: str, *, end_of_day: bool) -> datetime:
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        day = date.fromisoformat(text) + timedelta(days=int(end_of_day))
        return datetime(day.year, day.month, day.day, tzinfo=UTC)
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _timestamp(moment: datetime) -> str:
    return f"TIMESTAMP {sql_literal(moment.astimezone(UTC).replace(tzinfo=None).isoformat(sep=' '))}"


def _any(column: str, values: tuple[str, ...], translate: Callable[[str, str], str]) -> str:
    conditions = [translate(column, unicodedata.normalize("NFC", value)) for value in values]
    return conditions[0] if len(conditions) == 1 else f"({' OR '.join(conditions)})"


def _holds(column: str, value: str) -> str:
    return f"array_has({column}, {sql_literal(value)})"


def _equals(column: str, value: str) -> str:
    return sql_in(column, [value.strip().lower()])


def _below(column: str, value: str) -> str:
    folder = value.rstrip("/")
    return f"({column} = {sql_literal(folder)} OR starts_with({column}, {sql_literal(folder + '/')}))"


def _matches(column: str, value: str) -> str:
    if not {"*", "?"}.intersection(value):
        text = sql_literal(value)
        return f"starts_with({column}, {text})" if value.endswith("/") else f"{column} = {text}"
    # The backslash is LIKE's own escape character.
    pattern = re.sub(r"[\\%_]", r"\\\g<0>", value).replace("*", "%").replace("?", "_")
    return f"{column} LIKE {sql_literal(pattern)}"
