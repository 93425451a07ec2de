"""What a published version knows of its documents beside what is searched: facet values and meta knowledge.

Read from the stored tables at their published versions, when asked for the first time; most searches need neither.
"""

from dataclasses import dataclass
from functools import cached_property

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.tables import DOCUMENT_FACETS, DOCUMENTS, META_KNOWLEDGE, PAGES
from rag_assets.query.filters import Filters, check_known, texts_of, there_are
from rag_assets.query.stored import StoredTables


@dataclass(frozen=True)
class Selection:
    """A facet value, or a combination of them, with what is known of its questions."""

    name: str  # as in `department=sales & document_type=report`
    facets: tuple[str, ...]  # the values, each as `facet=value`
    key_terms: tuple[str, ...]  # terms that set its questions apart, best first
    text: str  # summary of its questions and answers
    question_count: int  # questions that it is made from


class Knowledge:
    """Facet values and meta knowledge of a published version."""

    def __init__(self, stored: StoredTables) -> None:
        self._stored = stored

    @cached_property
    def selections(self) -> tuple[Selection, ...]:
        """The meta knowledge, by falling number of questions; equal ones by name.

        Raises:
            StoreError: A file is gone.
        """
        columns = ["selection", "facets", "key_terms", "text", "question_count"]
        selections = [
            Selection(
                row["selection"],
                tuple(row["facets"]),
                tuple(row["key_terms"]),
                row["text"],
                row["question_count"],
            )
            for row in self._stored.read(META_KNOWLEDGE, columns).to_pylist()
        ]
        return tuple(sorted(selections, key=lambda selection: (-selection.question_count, selection.name)))

    def documents(self, filters: Filters) -> frozenset[str]:
        """Documents that have the facet values that filters ask for.

        Raises:
            QueryError: No document has any value of a facet.
            StoreError: A file is gone.
        """
        names = sorted({value.partition("=")[0] for value in self._holders})
        for name in filters.facet_values():
            if name not in names:
                raise QueryError(f"no document has a facet {name!r}; {there_are('facet', [name], names)}")
        for name, values in filters.facet_values().items():
            known_values = [value.partition("=")[2] for value in self._holders if value.partition("=")[0] == name]
            check_known(f"facet.{name}", [value.partition("=")[2] for value in values], known_values)
        document_sets = [
            frozenset().union(*(self._holders.get(value, frozenset()) for value in values))
            for values in filters.facet_values().values()
        ]
        return frozenset.intersection(*document_sets) if document_sets else frozenset()

    def values(self, column: str) -> frozenset[str]:
        """The values of a column among all documents or, of names, pages; those without passages among them.

        Raises:
            StoreError: A file is gone.
        """
        return texts_of(self._stored.read(PAGES if column == "page_name" else DOCUMENTS, [column])[column])

    @cached_property
    def _holders(self) -> dict[str, frozenset[str]]:
        """Documents by facet value."""
        rows = self._stored.read(DOCUMENT_FACETS, ["document_id", "facet", "value"])
        holders: dict[str, set[str]] = {}
        for row in rows.to_pylist():
            holders.setdefault(f"{row['facet']}={row['value']}", set()).add(row["document_id"])
        return {value: frozenset(names) for value, names in holders.items()}
