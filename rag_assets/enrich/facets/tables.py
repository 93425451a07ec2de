"""The step `document_facets`: brings the facet values of documents in step with their pages and summaries.

A language model classifies a document in one pass, in which it reasons first, then names the values of all facets.
Where the context is small, less room is left for the answer; where that is not enough, values are listed without
descriptions. Where even that does not fit, nothing is asked. The name of the file is not told to the model, so that a
renamed file costs no call.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

from rag_assets.contracts.content import Page
from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.generation import JsonValue, Request, Tag, object_schema
from rag_assets.contracts.ports import Embedder, LanguageModel
from rag_assets.contracts.tables import DOCUMENT_FACETS, FILE_SUMMARIES
from rag_assets.enrich.documents import TITLE_TOKENS, Document, Subject, body_text, load_documents
from rag_assets.enrich.facets.extraction import METHOD, Assignment, Classifier, Profile, folded, profile
from rag_assets.enrich.facets.taxonomy import LANGUAGES, Taxonomy
from rag_assets.enrich.written import Progress, Records, update_documents
from rag_assets.models.dialogue import Dialogue
from rag_assets.models.prompts import SLACK, TOKENS_PER_CHAR, fenced, prompted
from rag_assets.parsing.records import Record
from rag_assets.store.incremental import StepReport
from rag_assets.store.lake import Lake, shard_of
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens, estimate_tokens

_log = logging.getLogger(__name__)

STEP = "classify_document"

_REASONING_CHARS = 300
_EVIDENCE_CHARS = 40
_VALUE_TOKENS = 60  # for the form of one value in the answer
_NAMES_TOKENS = 400
_SHORT_NAMES_TOKENS = 200
_TAG_TOKENS = 64  # for the digits of tags, which follow from the text
_LEAST_TOKENS = 384  # of the document that are read, or all where it is shorter
_LEAST_PAGE_TOKENS = 40


def wanted_facets(
    lake: Lake, shard: str, taxonomy: Taxonomy, read_tokens: int, model_name: str, embedder_name: str
) -> dict[str, str]:
    """What the facet values of each document of a shard are to be computed from.

    The summary of a document is made from its pages, so that its input stands for theirs.
    """
    code = code_fingerprint(f"{__name__}:update_facets")
    fingerprint = digest(code, taxonomy.digest, read_tokens, model_name, embedder_name)
    return {name: digest(key, fingerprint) for name, key in lake.inputs(FILE_SUMMARIES, shard).items()}


def update_facets(
    lake: Lake,
    shards: Sequence[str],
    model: LanguageModel,
    embedder: Embedder,
    taxonomy: Taxonomy,
    read_tokens: int,
    progress: Progress,
) -> StepReport:
    """Classify the documents of some shards that changed.

    A model that writes reads at most `read_tokens` of a document; the embedder serves the extractive algorithm.

    Raises:
        ModelError: A model cannot be used any longer; what was done before is written.
    """
    classifier = Classifier(taxonomy, embedder)

    def wanted(shard: str) -> Mapping[str, str]:
        return wanted_facets(lake, shard, taxonomy, read_tokens, model.name, embedder.name)

    def begin(shard: str, documents: Sequence[str]) -> Iterator[tuple[str, Dialogue[Records]]]:
        contents, extracted = _load(lake, shard, documents), dict[str, list[Assignment]]()
        if not model.generative:  # many at once are embedded at less cost
            own = [content for content in contents if _has_text(content[0])]
            assignment_lists = classifier.classify([_profile(*content) for content in own])
            extracted = dict(zip((document.document_id for document, _ in own), assignment_lists, strict=True))
        for document, summary in contents:
            yield document.document_id, write_records(document, summary, extracted.get(document.document_id))

    def write_records(document: Document, summary: str, assignments: list[Assignment] | None) -> Dialogue[Records]:
        if not _has_text(document):
            return {}
        method = METHOD
        if model.generative:
            method = model.name
            assignments = yield from facet_dialogue(
                document.subject(), document.pages, taxonomy, read_tokens, model.context_tokens
            )
        if assignments is None:
            [assignments], method = classifier.classify([_profile(document, summary)]), METHOD
        return {DOCUMENT_FACETS.name: _records(document, assignments, method)}

    if model.generative:
        _warn_of_context(model, taxonomy)
    return update_documents(lake, [DOCUMENT_FACETS], shards, wanted, begin, model, progress)


def _warn_of_context(model: LanguageModel, taxonomy: Taxonomy) -> None:
    needed_tokens = max(context_needed(taxonomy, language) for language in LANGUAGES)
    if model.context_tokens < needed_tokens:
        _log.warning(
            "%s: taxonomy %s needs a context of %s tokens, %s takes %s: documents that do not fit go without it",
            STEP,
            taxonomy.name,
            f"{needed_tokens:,}",
            model.name,
            f"{model.context_tokens:,}",
        )


def _load(lake: Lake, shard: str, documents: Sequence[str]) -> list[tuple[Document, str]]:
    """Documents of a shard with their summaries; empty for one without."""
    rows = lake.read(FILE_SUMMARIES, [shard], ["document_id", "text"]).to_pylist()
    summaries = {row["document_id"]: row["text"] for row in rows}
    return [(document, summaries.get(document.document_id, "")) for document in load_documents(lake, shard, documents)]


def _has_text(document: Document) -> bool:
    return any(page.blocks for page in document.pages)


def _profile(document: Document, summary: str) -> Profile:
    return profile(document.title, summary, document.pages, document.language)


def _records(document: Document, assignments: Sequence[Assignment], method: str) -> list[Record]:
    name = document.document_id
    return [
        {"document_id": name, "shard": shard_of(name), **asdict(assignment), "method": method}
        for assignment in assignments
    ]


def facet_dialogue(
    subject: Subject, pages: Sequence[Page], taxonomy: Taxonomy, read_tokens: int, context_tokens: int
) -> Dialogue[list[Assignment] | None]:
    """Classify one document.

    Returns:
        Its values; None where nothing could be asked or the model named none.
    """
    whole = "\n\n".join(_texts(pages))
    least = min(_LEAST_TOKENS, estimate_tokens(whole))
    asking = next((asking for asking in _askings(subject, taxonomy) if asking.tokens + least <= context_tokens), None)
    if asking is None:
        return None
    text = document_text(pages, min(read_tokens, context_tokens - asking.tokens))
    [answer] = yield [asking.request(text)]
    if answer.fields is None:
        return None
    return _assignments(answer.fields, taxonomy, folded("\n".join([subject.title, *subject.page_names, text])))


def context_needed(taxonomy: Taxonomy, language: str) -> int:
    """Tokens of prompt and answer that a model must take to classify documents of any length in a language."""
    subject = Subject("", "", language, "", ())
    names = TITLE_TOKENS + _SHORT_NAMES_TOKENS
    return min(asking.tokens for asking in _askings(subject, taxonomy)) + names + _LEAST_TOKENS


def document_text(pages: Sequence[Page], tokens: int) -> str:
    """What the model reads of a document: its text, or the beginning of each page where that is too long.

    Tokens are estimated.
    """
    texts = _texts(pages)
    whole = "\n\n".join(texts)
    if estimate_tokens(whole) <= tokens:
        return whole
    lengths = [estimate_tokens(text) for text in texts]
    share = max(_LEAST_PAGE_TOKENS, _even_share(lengths, tokens))
    return cut_to_tokens("\n\n".join(cut_to_tokens(text, share) for text in texts), tokens)


def facet_list(taxonomy: Taxonomy, language: str, *, described: bool = True) -> str:
    """The facets and values of a taxonomy as the model reads them, with or without descriptions of the values."""
    japanese = language == "ja"
    required, most = ("必須、", "最大{}個") if japanese else ("required, ", "at most {}")
    lines = []
    for facet in taxonomy.facets:
        bounds = (required if facet.required else "") + most.format(facet.most_values)
        lines.append(f"- `{facet.name}` {facet.label(language)} ({bounds}): {facet.description(language)}")
        for value in facet.values:
            description = f": {value.description(language)}" if described else ""
            lines.append(f"  - `{value.name}` {value.label(language)}{description}")
    return "\n".join(lines)


@dataclass(frozen=True)
class _Asking:
    """One way to ask."""

    subject: Subject
    taxonomy: Taxonomy
    listed: str
    names_tokens: int
    answer_tokens: int

    @cached_property
    def tokens(self) -> int:
        """Tokens of prompt and answer without the text of the document, by estimate."""
        empty = self.request("")
        prompt = estimate_tokens(empty.prefix) + sum(estimate_tokens(message.text) for message in empty.messages)
        return prompt + _TAG_TOKENS + self.answer_tokens

    def request(self, text: str) -> Request:
        """What is asked of a text of the document."""
        question = {
            "title": self.subject.fenced_title,
            "page_names": self.subject.fenced_page_names(self.names_tokens),
            "document": fenced(text),
        }
        prefix = {"facets": self.listed, "reasoning_chars": str(_REASONING_CHARS)}
        tag = Tag(DOCUMENT_FACETS.name, STEP, self.subject.document_id, self.subject.shard)
        return prompted(tag, self.subject.language, self.answer_tokens, prefix, question, _properties(self.taxonomy))


def _askings(subject: Subject, taxonomy: Taxonomy) -> Iterator[_Asking]:
    """Ways to ask, the fullest first."""
    list_text = facet_list(taxonomy, subject.language)
    yield _Asking(subject, taxonomy, list_text, _NAMES_TOKENS, _answer_tokens(taxonomy, SLACK))
    yield _Asking(subject, taxonomy, list_text, _NAMES_TOKENS, _answer_tokens(taxonomy, 1))
    short = facet_list(taxonomy, subject.language, described=False)
    yield _Asking(subject, taxonomy, short, _SHORT_NAMES_TOKENS, _answer_tokens(taxonomy, 1))


def _texts(pages: Sequence[Page]) -> list[str]:
    return [text for text in map(body_text, pages) if text.strip()]


def _properties(taxonomy: Taxonomy) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {"reasoning": {"type": "string", "maxLength": SLACK * _REASONING_CHARS}}
    for facet in taxonomy.facets:
        item = object_schema(
            {
                "value": {"type": "string", "enum": [value.name for value in facet.values]},
                "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                "evidence": {"type": "string", "maxLength": SLACK * _EVIDENCE_CHARS},
            }
        )
        fields[facet.name] = {"type": "array", "maxItems": SLACK * facet.most_values, "items": item}
    return fields


def _answer_tokens(taxonomy: Taxonomy, slack: int) -> int:
    values = sum(facet.most_values for facet in taxonomy.facets)
    chars = slack * (_REASONING_CHARS + values * _EVIDENCE_CHARS)
    return int(chars * TOKENS_PER_CHAR) + values * _VALUE_TOKENS


def _assignments(value: Mapping[str, object], taxonomy: Taxonomy, document: str) -> list[Assignment]:
    """What the model named: a value once, no more than a facet allows, evidence only where the document holds it."""
    assignments: list[Assignment] = []
    for facet in taxonomy.facets:
        by_value: dict[str, Assignment] = {}
        items = value[facet.name]
        for item in items if isinstance(items, list) else []:
            quote = one_line(item["evidence"])
            evidence = quote if quote and folded(quote) in document else ""
            assignment = Assignment(facet.name, item["value"], round(float(item["confidence"]), 4), evidence)
            by_value.setdefault(assignment.value, assignment)
        assignments += list(by_value.values())[: facet.most_values]
    return assignments


def _even_share(lengths: Sequence[int], total: int) -> int:
    """The greatest length to which all may be cut so that they fit a total."""
    share, left, count = 0, total, len(lengths)
    for length in sorted(lengths):
        share = left // count
        if length > share:
            return share
        left, count = left - length, count - 1
    return share
