"""Proposes entity types for a collection of documents: its frequent names are grouped by their vectors, and each group
becomes a type, named by a language model or, without one, by the head noun that its names share.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import JsonValue, Tag, object_schema
from rag_assets.contracts.ports import Embedder, EmbeddingKind, LanguageModel
from rag_assets.contracts.tables import ENTITY_MENTIONS
from rag_assets.enrich.facets.taxonomy_suggestion import k_means, members
from rag_assets.graph.entity_types import IDENTIFIER, TERM, EntityTypes
from rag_assets.models.prompts import fenced, prompted
from rag_assets.store.lake import Lake
from rag_assets.text.folding import fold_name
from rag_assets.text.language import detect_language

SUGGEST_STEP = "suggest_types"

_MOST_NAMES = 600
_NAMES_SHOWN = 20
_EXAMPLES = 6
_SMALLEST_GROUP = 3
_ANSWER_TOKENS = 2000
_SHARE = 0.5
_ENDING_CHARS = (4, 3, 2)


@dataclass(frozen=True)
class TypeSuggestion:
    """A proposed entity type."""

    name: str  # as it would be stored
    ja: str  # what belongs to it, in Japanese
    en: str
    examples: tuple[str, ...]
    name_count: int = 0  # names in its group; 0 where a model made it


def suggest_types(
    lake: Lake, model: LanguageModel, embedder: Embedder, types: EntityTypes, count: int
) -> list[TypeSuggestion]:
    """Propose entity types.

    A model that does not write leaves it to head nouns.

    Returns:
        Proposals, the largest group first; of a model, in its order. None where there are no mentions.

    Raises:
        ModelError: A model cannot be used, or gave no usable answer.
    """
    names = _frequent_names(lake)
    if not names:
        return []
    vectors = embedder.embed(names, EmbeddingKind.PASSAGE)
    groups = [[names[index] for index in group] for group in grouped(vectors, count)]
    if model.generative:
        return _ask(groups, model, types, count)
    return [
        _by_head_noun(group, types, number)
        for number, group in enumerate(groups, start=1)
        if len(group) >= _SMALLEST_GROUP
    ]


def _frequent_names(lake: Lake) -> list[str]:
    """The most frequent names but identifiers, in falling frequency, each spelling once."""
    rows = lake.read(ENTITY_MENTIONS, columns=["name", "type", "document_id"])
    counts = rows.group_by(["name", "type"]).aggregate([("document_id", "count_distinct"), ("name", "count")])
    ranking = counts.sort_by(
        [("document_id_count_distinct", "descending"), ("name_count", "descending"), ("name", "ascending")]
    )
    names: dict[str, str] = {}
    for row in ranking.to_pylist():
        if row["type"] != IDENTIFIER:
            names.setdefault(fold_name(row["name"]), row["name"])
    return list(names.values())[:_MOST_NAMES]


def grouped(vectors: NDArray[np.float32], count: int) -> list[list[int]]:
    """Group vectors of unit length by direction.

    Args:
        vectors: Shape `(texts, dimension)`, rows of unit length.
        count: Groups at most.

    Returns:
        Indexes by group, see `members`.
    """
    centred = (vectors - vectors.mean(axis=0)).astype(np.float64)  # short texts have much in common
    centred /= np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-9)
    return members(k_means(centred, min(count, len(centred)))[0])


def _by_head_noun(group: Sequence[str], types: EntityTypes, number: int) -> TypeSuggestion:
    """A type from a group of names: one in use where most of them show it, else one named by what they share."""
    kind_counts = Counter(types.of_ending(name) or TERM for name in group)
    kind, votes = min(kind_counts.items(), key=lambda item: (-item[1], item[0]))
    if kind != TERM and votes >= len(group) * _SHARE:
        entity_type = next(item for item in types.types if item.name == kind)
        examples = [name for name in group if types.of_ending(name) == kind]
        return TypeSuggestion(
            kind, entity_type.describe("ja"), entity_type.describe("en"), tuple(examples[:_EXAMPLES]), len(group)
        )
    ending = _shared_ending(group)
    return TypeSuggestion(
        f"type_{number}",
        f"「{ending}」などの名前" if ending else f"「{group[0]}」に近い名前",
        f"names such as {ending or group[0]!r}",
        tuple(group[:_EXAMPLES]),
        len(group),
    )


def _shared_ending(group: Sequence[str]) -> str:
    """The longest ending that enough names share; empty for none."""
    for length in _ENDING_CHARS:
        endings = Counter(
            name.split()[-1] if name.isascii() else name[-length:] for name in group if len(name) > length
        )
        if endings:
            ending, votes = min(endings.items(), key=lambda item: (-item[1], item[0]))
            if votes >= max(_SMALLEST_GROUP, len(group) * _SHARE / 2):
                return ending
    return ""


def _ask(groups: Sequence[Sequence[str]], model: LanguageModel, types: EntityTypes, count: int) -> list[TypeSuggestion]:
    text = "\n".join(f"{number}. {' / '.join(group[:_NAMES_SHOWN])}" for number, group in enumerate(groups, start=1))
    request = prompted(
        Tag("entity_mentions", SUGGEST_STEP),
        detect_language(text),
        _ANSWER_TOKENS,
        {"count": str(count), "known": ", ".join(types.names)},
        {"names": fenced(text, "names")},
        _properties(count),
    )
    answer = next(iter(model.generate([request])))
    if answer.fields is None:
        raise ModelError(f"{model.name}: no usable proposal of entity types: {answer.error or answer.outcome}")
    spellings = {fold_name(name): name for group in groups for name in group}
    items = answer.fields["types"]
    return [_suggestion(item, spellings) for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _suggestion(item: Mapping[str, JsonValue], spellings: Mapping[str, str]) -> TypeSuggestion:
    """A model's proposal; examples that are not among the names are left out."""
    examples = item["examples"] if isinstance(item["examples"], list) else []
    keys = (fold_name(str(name)) for name in examples)
    return TypeSuggestion(
        str(item["name"]), str(item["ja"]), str(item["en"]), tuple(spellings[k] for k in keys if k in spellings)
    )


def _properties(count: int) -> dict[str, JsonValue]:
    text: JsonValue = {"type": "string", "minLength": 1}
    name: JsonValue = {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"}
    examples: JsonValue = {"type": "array", "items": text}
    item: JsonValue = object_schema({"name": name, "ja": text, "en": text, "examples": examples})
    return {"types": {"type": "array", "maxItems": count, "items": item}}
