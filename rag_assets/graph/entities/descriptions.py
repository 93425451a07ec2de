"""Descriptions of entities and relationships: gathered from their mentions, each once, and shortened when long."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.generation import Tag
from rag_assets.contracts.ports import LanguageModel
from rag_assets.enrich.summaries.extraction import select_diverse, tf_idf
from rag_assets.models.dialogue import Dialogue, Missing, converse, watched
from rag_assets.models.prompts import SLACK, answer_tokens, fenced, prompted
from rag_assets.text.folding import fold_name
from rag_assets.text.language import detect_language
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens

DESCRIBE_STEP = "describe_entity"
MOST_NOTES = 24

_READ_TOKENS = 3000
_FORM_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Notes:
    """What documents say of an entity or relationship."""

    identity: str  # what it is found under again
    name: str  # its name; of a relationship, both names
    type: str
    texts: tuple[str, ...]  # what is said, the most important first
    asset: str  # table that the description goes into

    def content_sha256(self, method: str) -> str:
        """Digest of what a description is made from."""
        return digest(self.name, self.type, self.texts, method)


@dataclass(frozen=True, slots=True)
class Description:
    """A description, with the digest of what it was made from; None where it is to be made again."""

    text: str
    content_sha256: str | None


def describe(
    notes: Iterable[Notes], known: dict[str, Description], model: LanguageModel, chars: int, missing: Missing
) -> dict[str, Description]:
    """Describe entities or relationships.

    A description of the version before (`known`, by identity) is kept where it was made from the same. A model that
    writes sums up texts of more than `chars` characters; else, and where its answer is of no use (`missing` is told), a
    choice of them stands.

    Raises:
        ModelError: The model cannot be used any longer.
    """
    method = digest(code_fingerprint(f"{__name__}:describe"), model.name, chars)
    descriptions: dict[str, Description] = {}
    long: list[Notes] = []
    for note in notes:
        content = note.content_sha256(method)
        before = known.get(note.identity)
        if before is not None and before.content_sha256 == content:
            descriptions[note.identity] = before
        elif model.generative and _length(note.texts) > chars:
            long.append(note)
        else:
            descriptions[note.identity] = Description(gathered(note.texts, chars), content)
    if long:
        dialogues = ((index, watched(description_dialogue(note, chars), missing)) for index, note in enumerate(long))
        answers = dict(converse(model, dialogues))
        for index, note in enumerate(long):
            text = answers[index]
            content_or_none = note.content_sha256(method) if text else None
            descriptions[note.identity] = Description(text or gathered(note.texts, chars), content_or_none)
    return descriptions


def gathered(texts: Sequence[str], chars: int) -> str:
    """Texts as one, of at most so many characters: all of them where they fit, else the first ones that add something.

    Texts come by falling importance.
    """
    distinct = list(_distinct(texts))
    if not distinct or _length(distinct) <= chars:
        return "\n".join(distinct)
    importance = -np.arange(len(distinct), dtype=np.float64)
    indexes = select_diverse(tf_idf(distinct), importance, [len(text) + 1 for text in distinct], chars)
    return "\n".join(distinct[index] for index in indexes) or distinct[0][:chars]


def _distinct(texts: Sequence[str]) -> Iterator[str]:
    """Texts that say the same are kept once, and so are those that are within another."""
    texts_by_key: dict[str, str] = {}
    for text in texts:
        texts_by_key.setdefault(fold_name(text), text)
    keys = sorted(texts_by_key, key=len, reverse=True)
    inner = {key for index, key in enumerate(keys) if any(key in longer for longer in keys[:index])}
    return (text for key, text in texts_by_key.items() if key not in inner)


def _length(texts: Sequence[str]) -> int:
    return sum(len(text) + 1 for text in texts) - 1


def description_dialogue(notes: Notes, chars: int) -> Dialogue[str]:
    """A description by a model, or an empty text."""
    text = cut_to_tokens("\n".join(f"- {entry}" for entry in _distinct(notes.texts)), _READ_TOKENS)
    request = prompted(
        Tag(notes.asset, DESCRIBE_STEP),
        detect_language(text),
        answer_tokens(chars, _FORM_TOKENS),
        {"chars": str(chars)},
        {"name": notes.name, "type": notes.type, "notes": fenced(text, "notes")},
        {"description": {"type": "string", "maxLength": SLACK * chars}},
    )
    (answer,) = yield [request]
    return one_line(answer.fields["description"]) if answer.fields else ""
