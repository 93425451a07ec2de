"""What `ask` returns: sentences with checked citations, the sources that they name, and the trace.

What stays out: how an answer is written (`rag_assets.query.ask.reader`) and checked (`rag_assets.query.ask.quotes`).
"""

from dataclasses import dataclass, replace

from rag_assets.query.results import Citation, Hit, Trace


@dataclass(frozen=True)
class SentenceCitation:
    """A source that a sentence rests on.

    Attributes:
        number: Number of the source, from 1.
        quote: The words of the source that say it; may be empty.
        supported: Whether the words stand in the source, width, spaces and punctuation aside, and can carry the
            sentence; of an answer from community reports, whether passages hold enough of what it says.
    """

    number: int
    quote: str
    supported: bool

    def to_json(self) -> dict[str, object]:
        """The citation, for JSON."""
        return {"number": self.number, "quote": self.quote, "supported": self.supported}


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

    @property
    def supported(self) -> bool:
        """Whether at least one of its citations is."""
        return any(citation.supported for citation in self.citations)

    def to_json(self) -> dict[str, object]:
        """The sentence, for JSON."""
        return {
            "text": self.text,
            "supported": self.supported,
            "unfounded": list(self.unfounded),
            "citations": [citation.to_json() for citation in self.citations],
        }


@dataclass(frozen=True)
class Source:
    """A numbered piece of evidence that a reader was given.

    Attributes:
        number: As citations name it, from 1.
        hit: The passage.
        text: Its text as the reader saw it, which may be the beginning of a long one.
    """

    number: int
    hit: Hit
    text: str

    @property
    def citation(self) -> Citation:
        """Where it stands."""
        return self.hit.citation

    def to_json(self) -> dict[str, object]:
        """The source, for JSON: a hit with its number and the text that was read."""
        return {"number": self.number, **self.hit.to_json(), "text": self.text}


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    Attributes:
        question: As asked.
        mode: How passages were found.
        answered: Whether the documents hold an answer, as far as could be told.
        text: The answer with numbers of sources, or that it is not in the documents; in the question's language.
        sentences: The same, sentence by sentence; where there is no answer, empty, or quotes that are only near to the
            question.
        sources: What citations name, by number.
        trace: What was done.
        model: Who wrote it; None where passages are quoted as they stand.
        removed_citations: Citations that named no source and were taken out.
        failure: Why the language model did not write it, where it was to; else None.
    """

    question: str
    mode: str
    answered: bool
    text: str
    sentences: tuple[Sentence, ...]
    sources: tuple[Source, ...]
    trace: Trace
    model: str | None = None
    removed_citations: int = 0
    failure: str | None = None

    def cited(self) -> tuple[Source, ...]:
        """The sources that sentences name, by number."""
        named = {citation.number for sentence in self.sentences for citation in sentence.citations}
        return tuple(source for source in self.sources if source.number in named)

    def with_trace(self, trace: Trace) -> "Answer":
        """The same answer with another trace."""
        return replace(self, trace=trace)

    def to_json(self) -> dict[str, object]:
        """One JSON object: question, mode, answer, sentences, sources, trace, and how it came about."""
        return {
            "question": self.question,
            "mode": self.mode,
            "answered": self.answered,
            "answer": self.text,
            "sentences": [sentence.to_json() for sentence in self.sentences],
            "sources": [source.to_json() for source in self.sources],
            "model": self.model,
            "removed_citations": self.removed_citations,
            "failure": self.failure,
            "trace": self.trace.to_json(),
        }


@dataclass(frozen=True)
class EvidenceFound:
    """Passages were found; the answer is written next.

    Attributes:
        hits: The passages, best first.
        trace: What was done so far.
    """

    hits: tuple[Hit, ...]
    trace: Trace


@dataclass(frozen=True)
class TextPiece:
    """A further piece of the text, as it is being written; not checked yet.

    Attributes:
        text: The piece.
    """

    text: str


@dataclass(frozen=True)
class Answered:
    """The checked answer; the last event. Its text replaces the pieces.

    Attributes:
        answer: The answer.
    """

    answer: Answer


AnswerEvent = EvidenceFound | TextPiece | Answered
