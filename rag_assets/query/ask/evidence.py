"""The numbered evidence that a reader is given: the passages found, packed to a budget of tokens.

Passages of one page stand together in reading order, the page with the best passage first; each keeps its own number,
so that a citation leads to its very cells. Lines that a passage repeats of the one before it are shown once.
"""

from collections.abc import Sequence
from dataclasses import replace

from rag_assets.query.ask.answers import Sentence, Source
from rag_assets.query.ask.quoted.statements import heading_above
from rag_assets.query.results import Hit
from rag_assets.text.tokens import cut_to_tokens, estimate_tokens

_LABEL_TOKENS = 12  # number and line ends around a source
_LEAST_TOKENS = 40  # of a passage; it is left out where there is no room for so much of it


def pack(hits: Sequence[Hit], budget_tokens: int, *, by_page: bool = True) -> tuple[Source, ...]:
    """The best passages that fit, as sources numbered from 1.

    Args:
        hits: Passages, best first.
        budget_tokens: Tokens of all together, at most, by estimate. The last passage that fits in part is cut.
        by_page: Whether passages of a page stand together; else the best come first.
    """
    passages: dict[str, tuple[Hit, str]] = {}
    room = budget_tokens
    for hit in hits:
        room -= _LABEL_TOKENS + estimate_tokens(str(hit.citation))
        if room < _LEAST_TOKENS and passages:
            break
        fits = estimate_tokens(hit.text) <= room
        text = hit.text if fits else cut_to_tokens(hit.text, max(_LEAST_TOKENS, room))
        passages.setdefault(hit.chunk_id, (hit, text))
        room -= estimate_tokens(text)
    pages: dict[str, list[tuple[Hit, str]]] = {}
    for hit, text in passages.values():
        pages.setdefault(hit.page_id if by_page else hit.chunk_id, []).append((hit, text))
    ordered_passages = [
        passage for page in pages.values() for passage in sorted(page, key=lambda pair: position(pair[0].chunk_id))
    ]
    return tuple(Source.of(number, hit, text) for number, (hit, text) in enumerate(ordered_passages, start=1))


def sources_text(sources: Sequence[Source]) -> str:
    """Sources as a reader sees them: number, place and text."""
    return "\n\n".join(f"[{source.number}] {source.citation}\n{text}" for source, text in _without_repeats(sources))


def placed_by_quotes(sentences: Sequence[Sentence], sources: Sequence[Source]) -> tuple[Source, ...]:
    """Sources, with the heading above what is first quoted of each where the passage has it within."""
    quotes = {
        citation.number: citation.quote for sentence in reversed(sentences) for citation in reversed(sentence.citations)
    }
    above = {source.number: heading_above(source.whole_text, quotes.get(source.number, "")) for source in sources}
    return tuple(
        replace(source, citation=replace(source.citation, heading=above[source.number]))
        if above[source.number]
        else source
        for source in sources
    )


def _without_repeats(sources: Sequence[Source]) -> list[tuple[Source, str]]:
    parts: list[tuple[Source, str]] = []
    before: Source | None = None
    for source in sources:
        lines = source.text.splitlines()
        if before is not None and _follows(before, source):
            lines = lines[_repeated_count(before.text.splitlines(), lines) :]
        parts.append((source, "\n".join(lines)))
        before = source
    return parts


def _repeated_count(before: Sequence[str], lines: Sequence[str]) -> int:
    """Lines at the beginning that the passage before ends with; never all of them."""
    most = min(len(before), len(lines) - 1)
    return next((count for count in range(most, 0, -1) if list(before[-count:]) == list(lines[:count])), 0)


def position(chunk_id: str) -> int:
    """Place of a passage on its page, from 0."""
    index = chunk_id.rpartition(".")[2]
    return int(index) if index.isdecimal() else 0


def _follows(before: Hit, hit: Hit) -> bool:
    return before.page_id == hit.page_id and position(hit.chunk_id) == position(before.chunk_id) + 1
