"""Proposes a taxonomy for a corpus: documents whose summaries are alike become the values of a facet.

Vectors of summaries are centred and clustered by spherical k-means; the number of clusters is the one with the best
mean silhouette. A value is named by the terms that set its cluster apart, or by the language model. Terms are whole
words of titles, headings and text: not of file names, of covers and the like, nor of lines that documents of several
clusters share. The proposal is a draft for a person to edit.

Sources: Dhillon and Modha, "Concept Decompositions for Large Sparse Text Data Using Clustering", Machine Learning 42
(2001), section 3 (spherical k-means); deviation: centres start farthest-first from the point next to the mean, so that
the result is the same each time. Rousseeuw, "Silhouettes", J. Comput. Appl. Math. 20 (1987); deviation: distances to
the centres of clusters stand for mean distances to their members. Terms: contribution of a term to the relative entropy
of the cluster and the other documents, as in Carpineto et al., ACM TOIS 19(1), 2001, section 3; documents that hold a
term are counted, those that hold it in a title or heading twice.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.generation import Completion, JsonValue, Request, Tag
from rag_assets.contracts.ports import Embedder, EmbeddingKind, LanguageModel
from rag_assets.contracts.tables import FILE_SUMMARIES
from rag_assets.enrich.documents import Document, load_documents, stated_title
from rag_assets.enrich.facets.extraction import Profile
from rag_assets.enrich.facets.taxonomy import NAME, Facet, Taxonomy, Value, taxonomy_text
from rag_assets.enrich.knowledge.extraction import readable_terms
from rag_assets.enrich.summaries.boilerplate import line_key
from rag_assets.enrich.summaries.extraction import outline
from rag_assets.models.prompts import fenced, prompted
from rag_assets.store.lake import Lake
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens

NAME_STEP = "name_facet_value"

_ASSET = "document_facets"
_FACET = "topic"
_LEAST_DOCUMENTS = 4
_ROUNDS = 50
_TERMS = 6
_EXAMPLES = 8
_EXAMPLE_TOKENS = 2000
_DESCRIPTION_CHARS = 120
_ANSWER_TOKENS = 800
_LINES = 400  # of a document, of each kind
_LONGEST_TERM = 14
_COMMON = frozenset(
    (
        *("http", "https", "sample", "example", "page", "figure", "table", "section", "total", "name", "number"),
        *("date", "本書", "内容", "記載", "項目", "説明", "備考", "使用", "サンプル", "概要", "一覧", "名称"),
        *("番号", "日付", "目次", "表紙", "変更履歴", "改訂履歴", "作成", "作成日", "作成者", "更新", "変更"),
        *("追加", "対象", "定義"),
    )
)


def suggest_taxonomy(lake: Lake, embedder: Embedder, model: LanguageModel, most_values: int) -> str:
    """Propose a taxonomy for all stored documents.

    A model that does not write leaves the names of values to the terms of the clusters.

    Returns:
        TOML text that `load_taxonomy` reads, with one facet. Of fewer than four documents, or such as are all alike, it
        has one value.

    Raises:
        QueryError: Nothing is indexed.
        ModelError: A model failed.
    """
    documents = _documents(lake)
    if not documents:
        raise QueryError("nothing is indexed to propose a taxonomy from; run `rag-assets index FOLDER` first")
    groups = _groups(documents, embedder, most_values)
    language = "ja" if sum(document.language == "ja" for document in documents) * 2 >= len(documents) else "en"
    terms = _distinguishing(documents, groups)
    values = [_by_terms(index, own_terms, language) for index, own_terms in enumerate(terms)]
    if model.generative:
        values = _named(model, documents, groups, terms, values, language)
    japanese = language == "ja"
    label = "話題" if japanese else "Topic"
    description = "文書が何を扱うか。" if japanese else "What the document deals with."
    facet = Facet(_FACET, _both(label), _both(description), _unique(values))
    sizes = ", ".join(f"{value.name} {len(group)}" for value, group in zip(facet.values, groups, strict=True))
    comment = f"Proposed from {len(documents)} documents; a draft to edit.\nDocuments by value: {sizes}"
    return taxonomy_text(Taxonomy("suggested", (facet,)), comment)


def cluster(vectors: NDArray[np.float64], most: int) -> list[list[int]]:
    """Cluster vectors of unit length; the number of clusters from 2 to `most` is that of the best silhouette.

    Args:
        vectors: Array of shape `(vectors, dimension)`.
        most: Clusters at most.

    Returns:
        See `members`.
    """
    best: tuple[float, NDArray[np.int64]] | None = None
    for count in range(2, min(most, len(vectors) - 1) + 1):
        labels, centres = k_means(vectors, count)
        score = _silhouette(vectors, labels, centres)
        if best is None or score > best[0] + 1e-9:
            best = score, labels
    if best is None:
        return [list(range(len(vectors)))]
    return members(best[1])


def members(labels: NDArray[np.int64]) -> list[list[int]]:
    """Indexes of the members of each cluster, rising; the largest cluster first, ties by first member."""
    groups = [np.flatnonzero(labels == label).tolist() for label in np.unique(labels)]
    return sorted(groups, key=lambda group: (-len(group), group[0]))


def _documents(lake: Lake) -> list[Profile]:
    profiles = {}
    for shard in lake.latest(FILE_SUMMARIES):
        rows = lake.read(FILE_SUMMARIES, [shard], ["document_id", "text"]).to_pylist()
        summaries = {row["document_id"]: row["text"] for row in rows}
        for document in load_documents(lake, shard, sorted(summaries)):
            profiles[document.document_id] = _described(document, summaries[document.document_id])
    return [profiles[name] for name in sorted(profiles)]


def _described(document: Document, summary: str) -> Profile:
    """A document with what tells it from others: a title that is the name of its file, and covers, are left out."""
    title = stated_title(document.document_id, document.title)
    headings, lines = [title], list[str]()
    for page in document.pages:
        if page.role is None:
            page_outline = outline(page.blocks)
            headings += [page.name or "", *page_outline.headings]
            lines += [*page_outline.columns, *page_outline.sentences]
    return Profile(title, summary, tuple(headings[:_LINES]), tuple(lines[:_LINES]), document.language)


def _groups(documents: Sequence[Profile], embedder: Embedder, limit: int) -> list[list[int]]:
    if len(documents) < _LEAST_DOCUMENTS:
        return [list(range(len(documents)))]
    vectors = embedder.embed([document.summary for document in documents], EmbeddingKind.PASSAGE).astype(np.float64)
    vectors = vectors - vectors.mean(axis=0)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (lengths > 1e-6).any():
        return [list(range(len(documents)))]
    return cluster(vectors / np.where(lengths > 0, lengths, 1), limit)


def k_means(vectors: NDArray[np.float64], count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Labels of vectors of unit length and centres of the clusters, none of them empty; see the top of the module."""
    seeds = [int((vectors @ vectors.mean(axis=0)).round(9).argmax())]
    while len(seeds) < count:
        seeds.append(int((vectors @ vectors[seeds].T).max(axis=1).round(9).argmin()))
    centres = vectors[seeds]
    labels = np.zeros(len(vectors), dtype=np.int64)
    for _ in range(_ROUNDS):
        new_labels = (vectors @ centres.T).round(9).argmax(axis=1)
        used_labels = np.unique(new_labels)
        centres = np.stack([vectors[new_labels == label].sum(axis=0) for label in used_labels])
        norms = np.linalg.norm(centres, axis=1, keepdims=True)
        centres = centres / np.where(norms > 0, norms, 1)
        new_labels = np.searchsorted(used_labels, new_labels).astype(np.int64)
        if np.array_equal(new_labels, labels):
            break
        labels = new_labels
    return labels, centres


def _silhouette(vectors: NDArray[np.float64], labels: NDArray[np.int64], centres: NDArray[np.float64]) -> float:
    if len(centres) < 2:
        return -1.0
    distances = 1 - vectors @ centres.T
    rows = np.arange(len(vectors))
    own = distances[rows, labels]
    distances[rows, labels] = np.inf
    nearest = distances.min(axis=1)
    spread = np.maximum(np.maximum(own, nearest), 1e-12)
    sizes = np.bincount(labels, minlength=len(centres))
    return float(np.where(sizes[labels] > 1, (nearest - own) / spread, 0.0).mean())


def _distinguishing(documents: Sequence[Profile], groups: Sequence[Sequence[int]]) -> list[list[str]]:
    """For each cluster the terms that most of its documents and few others hold, best first."""
    holders: dict[int, set[int]] = defaultdict(set)
    for number, group in enumerate(groups):
        for document in (documents[index] for index in group):
            for line in (*document.headings, *document.lines):
                holders[line_key(line)].add(number)
    shared_keys = frozenset(key for key, numbers in holders.items() if len(numbers) > 1)
    spellings: Counter[str] = Counter()
    weights: list[Counter[str]] = []
    for document in documents:
        heading_words, line_words = (
            _words("\n".join(line for line in lines if line_key(line) not in shared_keys))
            for lines in (document.headings, document.lines)
        )
        spellings.update([*heading_words, *line_words])
        weights.append(Counter({word.lower(): 1 for word in line_words} | {word.lower(): 2 for word in heading_words}))
    spelling = {word.lower(): word for word, _ in sorted(spellings.items(), key=lambda item: (item[1], item[0]))}
    return [[spelling[word] for word in terms] for terms in _best_terms(weights, groups)]


def _best_terms(weights: Sequence[Counter[str]], groups: Sequence[Sequence[int]]) -> Iterator[list[str]]:
    """For each cluster the terms that set it apart, best first, but those that are part of a better one."""
    everywhere = sum(weights, Counter[str]())
    for group in groups:
        here = sum((weights[index] for index in group), Counter[str]())
        counts = Counter(word for index in group for word in weights[index])
        other_count = max(1, len(weights) - len(group))
        scores = {}
        for word, count in here.items():
            share, elsewhere = count / len(group), (everywhere[word] - count + 0.5) / other_count
            if share > elsewhere and (counts[word] > 1 or len(group) == 1):
                scores[word] = share * math.log(share / elsewhere)
        best_words: list[str] = []
        for word in sorted(scores, key=lambda word: (-round(scores[word], 9), -len(word), word)):
            if not any(word in earlier or earlier in word for earlier in best_words):
                best_words.append(word)
        yield best_words[:_TERMS]


def _words(text: str) -> list[str]:
    """Whole words that may name a topic: no identifiers, and nothing that any document may say."""
    return [
        word
        for word in readable_terms(text)
        if word.isalpha() and len(word) <= _LONGEST_TERM and word.lower() not in _COMMON
    ]


def _by_terms(index: int, terms: Sequence[str], language: str) -> Value:
    name = "_".join(terms[:2]).lower()
    name = name if NAME.fullmatch(name) else f"{_FACET}_{index + 1:02d}"
    if language == "ja":
        label = "・".join(terms[:2]) or f"その他{index + 1}"
        description = f"{'、'.join(terms)} などを扱う文書。" if terms else "どの話題とも言えない文書。"
    else:
        label = " / ".join(terms[:2]) or f"other {index + 1}"
        description = f"Documents on {', '.join(terms)}." if terms else "Documents on nothing in particular."
    return Value(name, _both(label), _both(description), tuple(terms))


def _named(
    model: LanguageModel,
    documents: Sequence[Profile],
    groups: Sequence[Sequence[int]],
    terms: Sequence[Sequence[str]],
    values: Sequence[Value],
    language: str,
) -> list[Value]:
    """Values as the model names them; where it does not, as they are."""
    requests = []
    for index, group in enumerate(groups):
        other_words = [word for position, words in enumerate(terms) if position != index for word in words[:3]]
        members = [documents[position] for position in group[:: max(1, len(group) // _EXAMPLES)][:_EXAMPLES]]
        requests.append(_request(members, terms[index], other_words, language))
    position = {request.content_sha256: index for index, request in enumerate(requests)}
    new_values = list(values)
    for answer in model.generate(requests):
        index = position[answer.request.content_sha256]
        new_values[index] = _value(answer, values[index])
    return new_values


def _request(members: Sequence[Profile], terms: Sequence[str], other_words: Sequence[str], language: str) -> Request:
    descriptions = [": ".join(filter(None, (member.title, member.summary))) for member in members]
    text = cut_to_tokens("\n".join(f"- {description}" for description in descriptions), _EXAMPLE_TOKENS)
    separator = "、" if language == "ja" else ", "
    question = {
        "others": separator.join(other_words) or "-",
        "terms": separator.join(terms) or "-",
        "document": fenced(text),
    }
    properties: dict[str, JsonValue] = {
        "name": {"type": "string", "maxLength": 60},
        "label": {"type": "string", "minLength": 1, "maxLength": 60},
        "description": {"type": "string", "minLength": 1, "maxLength": 2 * _DESCRIPTION_CHARS},
        "terms": {"type": "array", "maxItems": 8, "items": {"type": "string", "maxLength": 40}},
    }
    prefix = {"description_chars": str(_DESCRIPTION_CHARS)}
    return prompted(Tag(_ASSET, NAME_STEP), language, _ANSWER_TOKENS, prefix, question, properties)


def _value(answer: Completion, fallback: Value) -> Value:
    value = answer.fields
    if value is None:
        return fallback
    name, label = str(value["name"]).strip().lower(), one_line(value["label"])
    description = one_line(value["description"])
    terms = value["terms"] if isinstance(value["terms"], list) else []
    clean_terms = tuple(dict.fromkeys(text for text in (one_line(term) for term in terms) if text))
    if not label or not description:
        return fallback
    return Value(name if NAME.fullmatch(name) else fallback.name, _both(label), _both(description), clean_terms)


def _unique(values: Sequence[Value]) -> tuple[Value, ...]:
    """Values whose names are all different: those that stand again get a number."""
    counts: Counter[str] = Counter()
    names = {value.name for value in values}
    unique_values = []
    for value in values:
        counts[value.name] += 1
        name = value.name
        while counts[value.name] > 1 and name in names:
            name = f"{value.name}_{counts[value.name]}"
            if name in names:
                counts[value.name] += 1
        names.add(name)
        unique_values.append(Value(name, value.labels, value.descriptions, value.terms))
    return tuple(unique_values)


def _both(text: str) -> tuple[tuple[str, str], ...]:
    return (("ja", text), ("en", text))
