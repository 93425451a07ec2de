"""What a language model wrote, checked against the sources that it names, and put into one text.

A citation of a source that does not exist is taken out and counted; words that their source does not hold, or that
cannot carry their sentence, are marked; so are numbers and codes of a sentence that none of its sources holds. The
marks stand in the text of the answer, too. An answer in a language that nobody asked in is none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_assets.contracts.generation import JsonValue
from rag_assets.query.ask.answers import Sentence, SentenceCitation, Source
from rag_assets.query.ask.markup import evidence_of, stable_beginning, without_markup
from rag_assets.query.ask.quotes import Meaning, carries, stands_in, unfounded
from rag_assets.text.language import detect_language, prompt_language
from rag_assets.text.plain import one_line

_LANGUAGE_CHARS = 60  # of an answer whose language can be told; of sentences in tables and reports .1 % are mistaken
_UNSUPPORTED = {"ja": "（出典で確認できません）", "en": " (not confirmed by its sources)"}
_UNFOUNDED = {"ja": "（出典にありません：{words}）", "en": " (not in its sources: {words})"}
_UNCHECKED = {"ja": "（出典と照合できません）", "en": " (could not be compared with its sources)"}

_MARKS = re.compile(r"\s*[\[［【]\s*\d+(?:\s*[,、，]\s*\d+)*\s*[\]］】]")
_OPEN_MARK = re.compile(r"\s*(?:[\[［【][\d\s,、，]{0,20})?$")


@dataclass(frozen=True)
class Draft:
    """A sentence as a model wrote it."""

    text: str  # the sentence
    quotes: tuple[tuple[int, str], ...]  # number of a source and its words, of each citation


def drafts_of(value: JsonValue) -> list[Draft]:
    """The sentences of an answer in JSON, also of one that is still being written; what is no sentence is left out."""
    sentences = value.get("sentences") if isinstance(value, dict) else None
    drafts = [
        Draft(_without_marks(text), (*_quotes(sentence.get("citations")), *_marked(text)))
        for sentence in (sentences if isinstance(sentences, list) else [])
        if isinstance(sentence, dict) and isinstance(text := sentence.get("text"), str)
    ]
    return [draft for draft in drafts if draft.text]


def checked(
    drafts: Sequence[Draft], sources: Sequence[Source], meaning: Meaning | None = None
) -> tuple[tuple[Sentence, ...], int]:
    """Sentences with citations that name a source; `meaning` compares a quote with a sentence of another language.

    Returns:
        The sentences, and the citations that were taken out.
    """
    by_number = {source.number: source for source in sources}
    sentences, removed_count = [], 0
    for draft in drafts:
        valid = [(number, quote) for number, quote in draft.quotes if number in by_number]
        removed_count += len(draft.quotes) - len(valid)
        citations = dict.fromkeys(
            _citation(number, quote, draft.text, by_number[number], meaning) for number, quote in valid
        )
        texts = [_whole_text(by_number[number]) for number, _ in valid]
        sentences.append(Sentence(draft.text, tuple(citations), unfounded(draft.text, texts)))
    return tuple(sentences), removed_count


def foreign_language(question: str, sentences: Sequence[Sentence], sources: Sequence[Source]) -> str | None:
    """Language of an answer where it is neither the question's nor that of a source; None where nobody can tell."""
    text = " ".join(sentence.text for sentence in sentences)
    answer_language = detect_language(text) if len(text) >= _LANGUAGE_CHARS else "und"
    if answer_language in {"und", prompt_language(question), detect_language(question)}:
        return None
    return None if any(detect_language(source.whole_text) == answer_language for source in sources) else answer_language


def rendered(sentences: Sequence[Sentence]) -> str:
    """The text of an answer: sentences, each with the numbers of its sources behind it."""
    return joined([(sentence.text, [citation.number for citation in sentence.citations]) for sentence in sentences])


def marked(sentences: Sequence[Sentence]) -> str:
    """The text of an answer, with a remark behind each sentence that its sources do not confirm."""
    return rendered([replace(sentence, text=sentence.text + _remark(sentence)) for sentence in sentences])


def may_hold(sentence: Sentence) -> bool:
    """Whether the check found a sentence confirmed by its sources, or could not compare it with them."""
    return not sentence.unfounded and (sentence.supported or sentence.unchecked)


def joined(sentences: Sequence[tuple[str, Sequence[int]]]) -> str:
    """Sentences with the numbers behind each, in one text."""
    text, gap = "", ""
    for sentence, numbers in sentences:
        marks = "".join(f"[{number}]" for number in dict.fromkeys(numbers))
        if text.endswith("]") and sentence.startswith(("(", "[", ":")):
            gap = " "  # the number of a source is not to become the text of a link
        text += gap + sentence
        gap = " " if sentence[-1:].isascii() else ""
        text += gap + marks if marks else ""
    return text


def text_so_far(value: JsonValue, sources: Sequence[Source]) -> str:
    """The text of an answer that is still being written; each longer answer gives a text that begins with this one."""
    drafts = drafts_of(value)
    numbers, evidence = {source.number for source in sources}, evidence_of(sources)
    parts = [(draft.text, [number for number, _ in draft.quotes if number in numbers]) for draft in drafts]
    if parts:
        last, _ = parts[-1]
        parts[-1] = (stable_beginning(_OPEN_MARK.sub("", last)), [])
    return joined([(without_markup(text, evidence), numbers) for text, numbers in parts]).rstrip()


def _citation(number: int, quote: str, sentence: str, source: Source, meaning: Meaning | None) -> SentenceCitation:
    is_carried = carries(quote, sentence, meaning) if stands_in(quote, source.whole_text) else False
    return SentenceCitation(number, quote, is_carried is True, is_carried is None)


def _remark(sentence: Sentence) -> str:
    language = prompt_language(sentence.text)
    if sentence.unfounded:
        return _UNFOUNDED[language].format(words=", ".join(sentence.unfounded))
    if sentence.supported:
        return ""
    return (_UNCHECKED if sentence.unchecked else _UNSUPPORTED)[language]


def _quotes(citations: object) -> list[tuple[int, str]]:
    quotes = []
    for citation in citations if isinstance(citations, list) else []:
        number, quote = (citation.get("number"), citation.get("quote")) if isinstance(citation, dict) else (None, None)
        if isinstance(number, int) and isinstance(quote, str):
            quotes.append((number, one_line(quote)))
    return quotes


def _marked(text: str) -> list[tuple[int, str]]:
    """Numbers that a sentence holds in brackets, against what it was told; they come without words."""
    numbers = [int(number) for match in _MARKS.finditer(text) for number in re.findall(r"\d{1,6}", match.group())]
    return [(number, "") for number in numbers]


def _without_marks(text: str) -> str:
    return one_line(_MARKS.sub("", text))


def _whole_text(source: Source) -> str:
    """A source with what tells where it stands."""
    return f"{source.title}\n{source.citation}\n{source.whole_text}"
