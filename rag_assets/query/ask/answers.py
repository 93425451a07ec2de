"""What `ask` returns: sentences with checked citations, the sources that they name, and the trace."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field, computed_field

from rag_assets.query.results import Hit, Trace

NOT_FOUND = {"ja": "資料には記載が見当たりません。", "en": "The documents do not say."}


@dataclass(frozen=True)
class SentenceCitation:
    """A source that a sentence rests on.

    Attributes:
        number: Number of the source, from 1.
        quote: The words of the source that say it; may be empty.
        supported: Whether the words stand in the source, width, spaces and punctuation aside, and can carry the
            sentence; of an answer from community reports, whether passages hold enough of what it says.
        unchecked: Whether the words stand in the source, and nobody can tell whether they carry the sentence, which is
            in another language.
    """

    number: int
    quote: str
    supported: bool
    unchecked: bool = False


@dataclass(frozen=True)
class Sentence:
    """A sentence of an answer.

    Attributes:
        text: The sentence, without numbers of sources.
        citations: What it rests on.
        unfounded: Numbers and codes in it that none of its sources holds.
    """

    text: str
    citations: tuple[SentenceCitation, ...] = ()
    unfounded: tuple[str, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def supported(self) -> bool:
        """Whether at least one of its citations is."""
        return any(citation.supported for citation in self.citations)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def unchecked(self) -> bool:
        """Whether none of its citations supports it, and one of them might."""
        return not self.supported and any(citation.unchecked for citation in self.citations)


@dataclass(frozen=True, kw_only=True)
class Source(Hit):
    """A numbered piece of evidence: a hit with the text that a reader saw, which may be the beginning of a long one.

    Attributes:
        number: As citations name it, from 1.
        whole_text: Text of the passage.
    """

    number: int
    whole_text: Annotated[str, Field(exclude=True)]

    @classmethod
    def of(cls, number: int, hit: Hit, text: str) -> "Source":
        """A hit as evidence, with what the reader sees of its text."""
        return cls(**{**vars(hit), "text": text}, number=number, whole_text=hit.text)


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    Attributes:
        question: As asked.
        mode: How passages were found.
        answered: Whether the documents hold an answer, as far as could be told: false as well where they confirm no
            sentence of what a model wrote.
        text: The answer with numbers of sources, or that it is not in the documents; in the question's language. What
            a model wrote and its sources do not confirm is marked in it.
        sentences: The same, sentence by sentence; where there is no answer, empty, quotes that are only near to the
            question, or what a model wrote and its sources do not confirm.
        sources: What citations name, by number.
        trace: What was done.
        model: Who wrote it; None where passages are quoted as they stand.
        removed_citations: Citations that named no source and were taken out.
        failure: Why the language model did not write it, where it was to; else None.
    """

    question: str
    mode: str
    answered: bool
    text: Annotated[str, Field(serialization_alias="answer")]
    sentences: tuple[Sentence, ...]
    sources: tuple[Source, ...]
    trace: Trace
    model: str | None = None
    removed_citations: int = 0
    failure: str | None = None

    def cited(self) -> tuple[Source, ...]:
        """The sources that sentences name, by number."""
        cited_numbers = {citation.number for sentence in self.sentences for citation in sentence.citations}
        return tuple(source for source in self.sources if source.number in cited_numbers)


@dataclass(frozen=True)
class EvidenceFound:
    """Passages were found; the answer is written next."""

    hits: tuple[Hit, ...]  # the passages, best first
    trace: Trace  # what was done so far


@dataclass(frozen=True)
class TextPiece:
    """A further piece of the text, as it is being written; not checked yet."""

    text: str  # the piece


@dataclass(frozen=True)
class Answered:
    """The checked answer; the last event. Its text replaces the pieces."""

    answer: Answer


AnswerEvent = EvidenceFound | TextPiece | Answered


@dataclass(frozen=True)
class AnswerParts:
    """An answer before it is put together; no sentences where the documents do not say."""

    sentences: tuple[Sentence, ...] = ()  # the answer
    sources: tuple[Source, ...] = ()  # what was given to answer it
    # what stands above the sentences where no model wrote them; all that is said where there are none. Empty for the
    # usual words
    opening: str = ""
    near: bool = False  # whether the sentences are only near to the question, and no answer
    removed: int = 0  # citations that were taken out


def numbered_as_cited(
    sentences: Sequence[Sentence], sources: Sequence[Source]
) -> tuple[tuple[Sentence, ...], tuple[Source, ...]]:
    """Sentences and their sources, those that are cited first, numbered in the order in which they are."""
    order = dict.fromkeys(citation.number for sentence in sentences for citation in sentence.citations)
    ordered_sources = sorted(
        sources,
        key=lambda source: [*order].index(source.number) if source.number in order else len(order),
    )
    numbers = {source.number: number for number, source in enumerate(ordered_sources, start=1)}
    numbered_sentences = [
        replace(
            sentence,
            citations=tuple(replace(citation, number=numbers[citation.number]) for citation in sentence.citations),
        )
        for sentence in sentences
    ]
    return tuple(numbered_sentences), tuple(
        replace(source, number=numbers[source.number]) for source in ordered_sources
    )
