"""Which names are of one entity: declared aliases, variant spellings, what a model confirms, what a person says.

Two names are never taken for one where their codes, versions or numbers differ, nor where one is only a part of a
person's name; only a person may overrule that. Every name that is taken for another is a row with its reason. What
comes out depends on the names alone, not on their order.
"""

import csv
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from rag_assets.contracts.errors import SettingsError
from rag_assets.contracts.generation import JsonValue, Tag
from rag_assets.contracts.ports import Embedder, EmbeddingKind, LanguageModel
from rag_assets.graph.entity_types import IDENTIFIER
from rag_assets.graph.names import is_part_of_name, may_be_one
from rag_assets.models.dialogue import Dialogue, Missing, converse, watched
from rag_assets.models.prompts import fenced, prompted
from rag_assets.text.folding import fold_name
from rag_assets.text.language import detect_language
from rag_assets.text.scripts import HIRAGANA, KANJI

CONFIRM_STEP = "confirm_entity"

_PERSON = "person"
_SMALLEST_DICE = 0.5
_COMMON_GRAM = 200  # names; a pair of characters that more names share does not lead to candidates
_CANDIDATES = 5
_CONFIRM_TOKENS = 32
_NOTE_CHARS = 300
_BLOCK = 8192  # pairs whose vectors are multiplied at once
_COLUMNS = ("name", "merge_into")

_LEGAL = re.compile(
    r"株式会社|有限会社|合同会社|\(株\)|\(有\)|[,\s]+(?:inc|corp|corporation|ltd|limited|co|llc|plc|gmbh|ag|sa|nv)\.?$"
)
_ARTICLE = re.compile(r"^(?:the|a|an) ")
_HONORIFIC = re.compile("(?:氏|さん|様|先生)$")
_SMALL_KANA = str.maketrans("ァィゥェォャュョッヮヵヶ", "アイウエオヤユヨツワカケ")
_KANJI = re.compile(f"[{KANJI}]")
_HIRAGANA = re.compile(f"[{HIRAGANA}]+")
_JOINTS = re.compile("[\\s\\-.'’・/ー]+")
_LAST_PLURAL = re.compile(r"(?<= )([a-z]{3,}?)(?:(?<=[^sui])s)$")
_SAME: Mapping[str, JsonValue] = {"same": {"type": "boolean"}}


_Cosines = Callable[[Sequence[tuple[str, str]]], list[float | None]]


class MergeRule(IntEnum):
    """Why two names were taken for one; the smaller, the surer (`entity_merges.rule`, in lower case)."""

    OVERRIDE = 0
    DECLARED = 1
    SIMILAR = 2
    MODEL = 3


@dataclass(frozen=True, slots=True)
class NameFacts:
    """A folded name with what its mentions tell."""

    key: str
    name: str  # its most frequent spelling
    type: str  # its most frequent type
    mention_count: int
    note: str = ""  # what a document says of it


@dataclass(frozen=True, slots=True)
class Declaration:
    """What documents declare: a name that stands for another, both folded, with the words that say so."""

    alias: str
    full: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Merge:
    """A name that was taken for another, or a reason to take it so; columns as of `entity_merges`."""

    name_key: str
    merged_into: str
    rule: MergeRule
    similarity: float | None
    evidence: str


@dataclass(frozen=True)
class Overrides:
    """What a person decided."""

    merges: Mapping[str, str] = field(default_factory=dict)  # folded names with those that they are taken for
    apart: frozenset[str] = frozenset()  # folded names that are taken for no other, and no other for them
    source: str = ""  # where it is written down


@dataclass(frozen=True)
class ResolutionOptions:
    """How names are compared."""

    similarity: float  # cosine of two names' vectors from which they may be one
    questions: int  # pairs that a language model is asked about, at most; the most alike first


def read_overrides(path: Path | None) -> Overrides:
    """Read the file in which a person says which names are one.

    It is a CSV file with the columns `name` and `merge_into`; the second is empty for a name to be kept apart.

    Raises:
        SettingsError: The file cannot be read, or says something that cannot be; the message names the line.
    """
    if path is None:
        return Overrides()
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            lines = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))]
    except (OSError, UnicodeError, csv.Error) as error:
        raise SettingsError(f"{path}: {error}") from error
    if not lines or tuple(lines[0][1]) != _COLUMNS:
        header = lines[0][1] if lines else []
        raise SettingsError(f"{path}, line 1: expected the columns {','.join(_COLUMNS)}, found {','.join(header)!r}")
    merges: dict[str, str] = {}
    apart: set[str] = set()
    for number, row in lines[1:]:
        if len(row) != len(_COLUMNS) or not fold_name(row[0]):
            raise SettingsError(f"{path}, line {number}: expected name,merge_into, found {','.join(row)!r}")
        name, into = fold_name(row[0]), fold_name(row[1])
        if name == into:
            raise SettingsError(f"{path}, line {number}: {row[0]!r} and {row[1]!r} are one name already")
        if name in apart or merges.get(name, into) != into or (name in merges and not into):
            raise SettingsError(f"{path}, line {number}: {row[0]!r} stands twice, with another decision")
        if into:
            merges[name] = into
        else:
            apart.add(name)
    for name in merges:
        _end_of_chain(merges, name, path)
    return Overrides(merges, frozenset(apart), path.name)


def _end_of_chain(merges: Mapping[str, str], name: str, path: Path) -> None:
    chain = [name]
    while chain[-1] in merges:
        next_name = merges[chain[-1]]
        if next_name in chain:
            raise SettingsError(f"{path}: names are merged in a circle: {' → '.join([*chain, next_name])}")
        chain.append(next_name)


def resolve_names(
    names: Iterable[NameFacts],
    declarations: Iterable[Declaration],
    overrides: Overrides,
    options: ResolutionOptions,
    embedder: Embedder | None,
    model: LanguageModel,
    missing: Missing | None = None,
) -> list[Merge]:
    """Find the names that are of one entity.

    Each key comes once among the names, in any order. Without an embedder, spelling variants are taken without
    comparison, and no model is asked. Names on which a model gives no usable answer stay apart; `missing` is told.

    Returns:
        One merge for each name that was taken for another, by name.

    Raises:
        ModelError: A model cannot be used.
    """
    facts = {name.key: name for name in sorted(names, key=lambda name: name.key)}
    cosines = partial(_cosines, embedder, facts)
    links = [*_override_links(facts, overrides), *_declared_links(facts, declarations)]
    links += _variant_links(facts, cosines, options.similarity)
    groups = _Groups(facts, overrides)
    for link in sorted(links, key=lambda link: (link.rule, link.name_key, link.merged_into)):
        groups.join(link)
    if model.generative and embedder is not None:
        pairs = [pair for pair in _candidates(facts, cosines, options) if groups.may_join(*pair[:2])]
        for link in _confirm(facts, pairs[: options.questions], model, missing or Missing()):
            groups.join(link)
    return groups.merges()


def _cosines(
    embedder: Embedder | None, names: Mapping[str, NameFacts], pairs: Sequence[tuple[str, str]]
) -> list[float | None]:
    """Cosine of the vectors of each pair of names, rounded; None without an embedder."""
    if embedder is None:
        return [None] * len(pairs)
    keys = sorted({key for pair in pairs for key in pair})
    place = {key: index for index, key in enumerate(keys)}
    vectors = embedder.embed([names[key].name for key in keys], EmbeddingKind.PASSAGE)
    first, second = (np.array([place[pair[end]] for pair in pairs], dtype=np.int64) for end in (0, 1))
    cosines: list[float] = []
    for start in range(0, len(pairs), _BLOCK):
        part = slice(start, start + _BLOCK)
        cosines += np.einsum("ij,ij->i", vectors[first[part]], vectors[second[part]]).tolist()
    return [round(value, 4) for value in cosines]


class _Groups:
    """Names that are one, growing link by link."""

    def __init__(self, names: Mapping[str, NameFacts], overrides: Overrides) -> None:
        self._names = names
        self._overrides = overrides
        self._root = {key: key for key in names}
        self._links: list[Merge] = []

    def find(self, key: str) -> str:
        while self._root[key] != key:
            self._root[key] = self._root[self._root[key]]
            key = self._root[key]
        return key

    def may_join(self, first: str, second: str) -> bool:
        """Whether two names may be taken for one without a person's word."""
        if {first, second} & self._overrides.apart or self.find(first) == self.find(second):
            return False
        if not may_be_one(first, second):
            return False
        if _PERSON in {self._names[first].type, self._names[second].type}:
            return not (is_part_of_name(first, second) or is_part_of_name(second, first))
        return True

    def join(self, link: Merge) -> None:
        first, second = self.find(link.name_key), self.find(link.merged_into)
        may_merge = link.rule is MergeRule.OVERRIDE or self.may_join(link.name_key, link.merged_into)
        if first != second and may_merge:
            self._root[max(first, second)] = min(first, second)
            self._links.append(link)

    def merges(self) -> list[Merge]:
        """A row for each name but the one that stands for its group."""
        members: dict[str, list[str]] = defaultdict(list)
        for key in self._root:
            members[self.find(key)].append(key)
        links: dict[str, list[Merge]] = defaultdict(list)
        for link in self._links:
            links[link.name_key].append(link)
            links[link.merged_into].append(link)
        merges: list[Merge] = []
        for group in members.values():
            if len(group) > 1:
                head = self._head(group, links)
                for key in group:
                    if key != head:
                        own = min(
                            links[key],
                            key=lambda link: (link.rule, link.name_key != key, link.name_key, link.merged_into),
                        )
                        merges.append(replace(own, name_key=key, merged_into=head))
        return sorted(merges, key=lambda merge: merge.name_key)

    def _head(self, group: Sequence[str], links: Mapping[str, Sequence[Merge]]) -> str:
        """The name that stands for a group: what a person or a declaration names, else the most frequent one."""

        def rank(key: str) -> tuple[int, int, str]:
            subordinate = {link.rule for link in links[key] if link.name_key == key}
            penalty = 2 if MergeRule.OVERRIDE in subordinate else 1 if MergeRule.DECLARED in subordinate else 0
            is_override = any(link.rule is MergeRule.OVERRIDE and link.merged_into == key for link in links[key])
            return penalty - (1 if is_override and not penalty else 0), -self._names[key].mention_count, key

        return min(group, key=rank)


def _override_links(names: Mapping[str, NameFacts], overrides: Overrides) -> Iterable[Merge]:
    """What a person decided; names that are taken for one that no document holds are one with each other."""
    heads: dict[str, str] = {}  # the first name of those that are taken for an unknown one
    for name in sorted(overrides.merges.keys() & names.keys()):
        into, chain = overrides.merges[name], name
        while True:
            chain += f" → {into}"
            if into in names or into not in overrides.merges:
                break
            into = overrides.merges[into]
        target = into if into in names else heads.setdefault(into, name)
        if target != name:
            yield Merge(name, target, MergeRule.OVERRIDE, None, f"{overrides.source}: {chain}")


def _declared_links(names: Mapping[str, NameFacts], declarations: Iterable[Declaration]) -> Iterable[Merge]:
    """Aliases that stand for one name only, wherever they are declared."""
    fulls_by_alias: dict[str, dict[str, str]] = defaultdict(dict)
    for declaration in sorted(
        declarations, key=lambda declaration: (declaration.alias, declaration.full, declaration.evidence)
    ):
        if declaration.alias in names and declaration.full in names:
            fulls_by_alias[declaration.alias].setdefault(declaration.full, declaration.evidence)
    for alias, fulls in fulls_by_alias.items():
        if len(fulls) == 1:
            ((full, evidence),) = fulls.items()
            yield Merge(alias, full, MergeRule.DECLARED, None, evidence)


def _variant_links(names: Mapping[str, NameFacts], cosines: _Cosines, similarity: float) -> Iterable[Merge]:
    """Spellings that differ in what usage leaves open, see `skeleton`, where their vectors agree."""
    groups: dict[str, list[NameFacts]] = defaultdict(list)
    for facts in names.values():
        if facts.type != IDENTIFIER:
            groups[skeleton(facts.key)].append(facts)
    pairs: list[tuple[str, str]] = []
    for bones, group in groups.items():
        if bones and len(group) > 1:
            head = min(group, key=lambda facts: (-facts.mention_count, facts.key))
            pairs += [(facts.key, head.key) for facts in group if facts.key != head.key]
    for (name, into), cosine in zip(pairs, cosines(pairs), strict=True):
        if cosine is None or cosine >= similarity:
            evidence = f"both are {skeleton(name)!r} without long-vowel marks, inflections and legal forms"
            yield Merge(name, into, MergeRule.SIMILAR, cosine, evidence)


def skeleton(key: str) -> str:
    """A folded name without what usage leaves open: long-vowel marks, small kana, okurigana, joints, legal forms.

    Okurigana go only where two ideographs or more are left (問い合わせ, 問合せ); of English names of several words the
    plural of the last one goes.
    """
    text = _HONORIFIC.sub("", _ARTICLE.sub("", _LEGAL.sub("", key)))
    text = _LAST_PLURAL.sub(r"\1", text).translate(_SMALL_KANA)
    if len(_KANJI.findall(text)) > 1 and _KANJI.search(text):
        text = _HIRAGANA.sub("", text)
    return _JOINTS.sub("", text)


def _candidates(
    names: Mapping[str, NameFacts], cosines: _Cosines, options: ResolutionOptions
) -> list[tuple[str, str, float]]:
    """Pairs of names of one type that share most of their characters and have near vectors, the nearest first.

    Pairs are found over pairs of characters that not too many names share, so that not all pairs are compared; of each
    name the most alike ones are looked at.
    """
    long_names = [name for name in names.values() if name.type != IDENTIFIER and len(name.key) > 2]
    grams = [sorted({name.key[place : place + 2] for place in range(len(name.key) - 1)}) for name in long_names]
    table = pa.table(
        {
            "name": pa.array([index for index, own_grams in enumerate(grams) for _ in own_grams], pa.int32()),
            "type": pa.array(
                [name.type for name, own_grams in zip(long_names, grams, strict=True) for _ in own_grams], pa.string()
            ),
            "gram": pa.array([gram for own_grams in grams for gram in own_grams], pa.string()),
            "size": pa.array([len(own_grams) for own_grams in grams for _ in own_grams], pa.int32()),
        }
    )
    query = """
        WITH rare AS (
            SELECT * FROM grams QUALIFY count(*) OVER (PARTITION BY type, gram) <= $common
        ), shared AS (
            SELECT a.name AS first, b.name AS second, 2.0 * count(*) / (any_value(a.size) + any_value(b.size)) AS dice
            FROM rare a JOIN rare b ON a.type = b.type AND a.gram = b.gram AND a.name < b.name
            GROUP BY a.name, b.name
        )
        SELECT first, second FROM shared WHERE dice >= $dice
        QUALIFY row_number() OVER (PARTITION BY first ORDER BY dice DESC, second) <= $most
        ORDER BY first, second
    """
    import duckdb

    with duckdb.connect() as connection:
        connection.register("grams", table)
        values = {"common": _COMMON_GRAM, "dice": _SMALLEST_DICE, "most": _CANDIDATES}
        matches = connection.execute(query, values).fetchall()
    pairs = [(long_names[first].key, long_names[second].key) for first, second in matches]
    pairs = [pair for pair in pairs if may_be_one(*pair)]
    near = [
        (*pair, cosine)
        for pair, cosine in zip(pairs, cosines(pairs), strict=True)
        if cosine is not None and cosine >= options.similarity
    ]
    return sorted(near, key=lambda pair: (-pair[2], pair[0], pair[1]))


def _confirm(
    names: Mapping[str, NameFacts], pairs: Sequence[tuple[str, str, float]], model: LanguageModel, missing: Missing
) -> list[Merge]:
    """Pairs that a model takes for one."""
    dialogues = (
        (index, watched(same_dialogue(names[first], names[second]), missing))
        for index, (first, second, _) in enumerate(pairs)
    )
    answers = dict(converse(model, dialogues))
    links: list[Merge] = []
    for index, (first, second, cosine) in enumerate(pairs):
        if answers[index]:
            name, into = sorted((first, second), key=lambda key: (names[key].mention_count, key))
            links.append(Merge(name, into, MergeRule.MODEL, cosine, f"{model.name} takes both names for one"))
    return links


def same_dialogue(first: NameFacts, second: NameFacts) -> Dialogue[bool]:
    """Whether a model takes two names for one."""
    lines = [f"{name.name} [{name.type}] {name.note[:_NOTE_CHARS]}".strip() for name in (first, second)]
    text = "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))
    tag, values = Tag("entity_merges", CONFIRM_STEP), {"names": fenced(text, "names")}
    (answer,) = yield [prompted(tag, detect_language(text), _CONFIRM_TOKENS, {}, values, _SAME)]
    return isinstance(answer.value, dict) and answer.value.get("same") is True
