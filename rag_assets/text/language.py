"""The language of a text, its sentences, and where a long one may be cut, by rules that need no model."""

import re
from functools import cache
from typing import TYPE_CHECKING

from rag_assets.text.scripts import (
    FULL_WIDTH_LETTERS,
    GREEK,
    HALF_WIDTH_KATAKANA,
    HAN,
    HANGUL,
    HEBREW,
    HIRAGANA,
    ITEM_LETTERS,
    KANA,
    KANJI,
    KATAKANA_LETTERS,
    LATIN,
    SPACELESS,
    THAI,
)

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_SAMPLE_CHARS = 4000
_LATIN_SAMPLE_CHARS = 1000
_LATIN_MINIMUM = 20
_PROFILE_MINIMUM = 40  # Latin letters that other languages than English are told from
_RUNNING_SHARE = 0.5  # of the words of running text that begin with a small letter, at least
_CONFIDENCE = 0.8
_NO_LANGUAGE = "zxx"  # as of code
_JAPANESE_WEIGHT = 3
_BESIDE_SHARE = 0.05  # ideographs for each letter from which Latin words that no sentence holds stand beside Japanese
_RARE_SHARE = 0.01
_KANA = re.compile(f"[{HIRAGANA}{KATAKANA_LETTERS}{HALF_WIDTH_KATAKANA}]")
_HAN = re.compile(f"[{HAN}〇]")
_JAPANESE = re.compile(f"[{KANA}・{KANJI}]")
_HIRAGANA = re.compile(f"[{HIRAGANA}]")
_LATIN = re.compile(f"[{LATIN}]")
_WORD = re.compile(f"[{LATIN}']+")
_SCRIPTS = (
    ("ko", re.compile(f"[{HANGUL}]")),
    ("th", re.compile(f"[{THAI}]")),
    ("el", re.compile(f"[{GREEK}]")),
    ("he", re.compile(f"[{HEBREW}]")),
)
_OTHER_LETTER = re.compile(r"[^\W\d_]")
_ENGLISH_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the of and to in a is that for it on with as are be this by from at or an was not have which can will has "
        "their all if we you one been were but they more when there who how what into its "
        "than other may should",
    )
)
_ENGLISH_SHARE = 0.12
_LEAST_ENGLISH = 2  # of these words, in a question with Japanese names

_ENDS = "。！？!?｡．.…"
_ALWAYS_ENDS = "。！？｡"
_CLOSERS = "」』）)】〕》〉”’\"'］]｝}"
_PAIRS = {
    "「": "」",
    "『": "』",
    "（": "）",
    "(": ")",
    "【": "】",
    "〔": "〕",
    "《": "》",
    "“": "”",
    "［": "］",
    "[": "]",
}
_BRACKET_CHARS = 400
_CLOSING = re.escape("」』）)】〕")
_CUTS = (
    re.compile(rf"(?= \| )|(?<=[。！？；])(?!\s*[{_CLOSING}])"),
    re.compile(rf"(?<=[、，])|(?<=[{_CLOSING}])(?!\s*[、，。{_CLOSING}{HIRAGANA}])|(?=\s)(?!\s+[{_CLOSING}])"),
    re.compile(f"(?<=[はがをにでとのもへや])(?![{HIRAGANA}])"),  # a particle
    re.compile(f"(?<=[{HIRAGANA}])(?![{HIRAGANA}])"),
    re.compile(f"(?<=[{SPACELESS}])"),
)  # where a long text may end, the best first; none is within a number or an identifier
_VISIBLE = re.compile(r"\S")
_LAST_WORD = re.compile(r"[^\s(\[\"'“]*\Z")
_ABBREVIATION_CHARS = 40
_ABBREVIATION = re.compile(
    r"[A-Z]|(?:[A-Za-z]\.)+[A-Za-z]|mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|cf|approx|al|fig|figs|eq|eqs"
    r"|sec|ch|vol|no|nos|pp|p|ed|eds|inc|ltd|co|corp|dept|est|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec|ver|rev"
    r"|ref|refs|tab|app|incl|resp|min|max",
    re.IGNORECASE,
)
_WIDE_ITEM = re.compile(  # also of a question, a figure or a table
    rf"[(（]?(?:問|質問|設問|図|表)?\s?(?:\d{{1,3}}|[{ITEM_LETTERS}{FULL_WIDTH_LETTERS}一二三四五六七八九十])"
    r"(?:[-－．]\d{1,3})*"
)
_ITEM_CHARS = 4
_ITEM_NUMBER = re.compile(r"\(?[0-9A-Za-z]{1,3}")
_SINGLE_LETTER = re.compile(r"(?<![^\s(])[A-Za-z](?=\s|$)")
_LETTERS = re.compile(r"[^\W\d_]+")
_LEAST_LETTERS = 5  # that stand alone in a torn text
_LETTER_SHARE = 0.2  # of its words
_REAL_LETTERS = frozenset("aAI")


def detect_language(text: str) -> str:
    """Main language of a text, by its beginning.

    Scripts decide wherever they can. Ideographs without kana are Japanese as long as CP932 has practically all of them,
    else Chinese. Of Latin texts, English is told by its commonest words; other words beside Japanese count as Japanese;
    other languages are told by py3langid, in running text that is long enough.

    Returns:
        ISO 639-1 code, as in `ja`; `und` where there are too few letters or no language stands out.
    """
    sample = text[:_SAMPLE_CHARS]
    kana, han = len(_KANA.findall(sample)), len(_HAN.findall(sample))
    latin = len(_LATIN.findall(sample))
    for code, script in _SCRIPTS:
        count = len(script.findall(sample))
        if count > max(kana + han, latin, 1):
            return code
    if _is_ideographic(kana + han, latin):
        return _ideographic_language(sample, kana, han)
    letters = len(_OTHER_LETTER.findall(sample))
    if letters < _LATIN_MINIMUM:
        return "und"
    words = [word.lower() for word in _WORD.findall(sample)]
    if latin * 2 > letters and sum(word in _ENGLISH_WORDS for word in words) >= _ENGLISH_SHARE * len(words):
        return "en"
    if kana + han >= _BESIDE_SHARE * letters:
        return _ideographic_language(sample, kana, han)
    if latin * 2 > letters and not _is_running_text(sample, latin):
        return "und"
    return _identified(sample[:_LATIN_SAMPLE_CHARS])


def is_japanese(text: str) -> bool:
    """Whether a text, as a heading or a passage, holds any Japanese character."""
    return _JAPANESE.search(text) is not None


def is_asked_in_japanese(question: str) -> bool:
    """Whether a question is Japanese, however many names of other letters it holds, and not English about one."""
    if _HIRAGANA.search(question):
        return True
    english = sum(word.lower() in _ENGLISH_WORDS for word in _WORD.findall(question))
    return is_japanese(question) and english < _LEAST_ENGLISH


def prompt_language(question: str) -> str:
    """Language of the prompts for a question: `ja` or `en`."""
    return "ja" if is_asked_in_japanese(question) else "en"


def is_ideographic(text: str) -> bool:
    """Whether a text is Japanese or Chinese rather than one in letters: what `detect_language` decides first of all."""
    sample = text[:_SAMPLE_CHARS]
    return _is_ideographic(len(_KANA.findall(sample)) + len(_HAN.findall(sample)), len(_LATIN.findall(sample)))


def _is_ideographic(ideographs: int, letters: int) -> bool:
    return ideographs > 0 and _JAPANESE_WEIGHT * ideographs >= letters


def _ideographic_language(text: str, kana: int, han: int) -> str:
    return "ja" if kana * 20 >= han or _is_japanese_han(text) else "zh"


def _is_running_text(text: str, latin: int) -> bool:
    """Whether Latin words are more than a few names or headings, of which any language can be made."""
    words = _WORD.findall(text)
    return latin >= _PROFILE_MINIMUM and sum(word[0].islower() for word in words) >= _RUNNING_SHARE * len(words)


def _is_japanese_han(text: str) -> bool:
    characters = _HAN.findall(text)
    rare = 0
    for character in characters:
        try:
            character.encode("cp932")
        except UnicodeEncodeError:
            rare += 1
    return rare <= _RARE_SHARE * len(characters)


@cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _identified(text: str) -> str:
    language, probability = _identifier().classify(text)
    return "und" if language == _NO_LANGUAGE or probability < _CONFIDENCE else str(language)


def split_sentences(text: str, language: str | None = None) -> list[str]:
    """Sentences of a text.

    A line break ends a sentence. Full stops inside brackets and quotation marks, in numbers, after abbreviations,
    initials and item numbers do not.

    Args:
        text: Any text.
        language: Its language; in Japanese and Chinese, `!`, `?` and `．` end a sentence without a space after them.
            None for that of each line by its letters.

    Returns:
        Sentences in order, trimmed, none empty; together they hold every character of the text but white space.
    """
    sentences: list[str] = []
    for line in text.splitlines():
        spaceless = is_ideographic(line) if language is None else language in {"ja", "zh"}
        start = first = position = 0  # of the sentence: where it begins, and where its first word does
        while position < len(line):
            character = line[position]
            if first == position and character.isspace():
                first = position = position + 1
                continue
            if character in _PAIRS:
                position = _after_bracket(line, position)
                continue
            position += 1
            if character not in _ENDS:
                continue
            position = _after_run(line, position)
            if _ends_sentence(line, first, position, spaceless=spaceless):
                sentences.append(line[start:position])
                start = first = position
        sentences.append(line[start:])
    return [sentence.strip() for sentence in sentences if sentence.strip()]


def cut(text: str, most: int, *, strictly: bool = False) -> str:
    """The beginning of a long text, to the last place where it may end.

    Args:
        text: Any text.
        most: Characters from which it is long, at least 1.
        strictly: Where there is no such place nearby, cut there, within a word, and not at the first one behind.
    """
    if len(text) <= most:
        return text
    for pattern in _CUTS:
        ends = [match.start() for match in pattern.finditer(text, most // 2, most + 1)]
        if near := [end for end in ends if end <= most]:
            return text[: near[-1]].rstrip()
    ends = [] if strictly else [match.start() for pattern in _CUTS if (match := pattern.search(text, most))]
    return text[: min(ends, default=most if strictly else len(text))].rstrip()


def _after_bracket(line: str, position: int) -> int:
    """Place behind the bracket that closes the one at `position`; just behind that one where none does soon."""
    closings = [_PAIRS[line[position]]]
    for index in range(position + 1, min(len(line), position + _BRACKET_CHARS)):
        if line[index] == closings[-1]:
            closings.pop()
            if not closings:
                return index + 1
        elif line[index] in _PAIRS:
            closings.append(_PAIRS[line[index]])
    return position + 1


def _after_run(line: str, position: int) -> int:
    """Place behind further end marks and the brackets and quotation marks that close."""
    while position < len(line) and line[position] in _ENDS:
        position += 1
    while position < len(line) and line[position] in _CLOSERS:
        position += 1
    return position


def _ends_sentence(line: str, start: int, position: int, *, spaceless: bool) -> bool:
    """Whether a sentence whose first word is at `start` ends at `position`; of its text only the last word is read."""
    behind = position
    while behind > start and line[behind - 1] in _CLOSERS:
        behind -= 1
    marks = behind
    while marks > start and line[marks - 1] in _ENDS:
        marks -= 1
    ending = line[marks:position]
    if position >= len(line) or any(mark in _ALWAYS_ENDS for mark in ending):
        return True
    next_character = line[position]
    if ending[0] == "．" and _WIDE_ITEM.fullmatch(line, start, marks):
        return False
    if spaceless and ending[0] in "!?．" and not next_character.isspace():
        return not (next_character.isdigit() or next_character.isascii())
    if not next_character.isspace():
        return False
    match = _VISIBLE.search(line, position)
    first = match[0] if match else ""
    if ending[0] == "." and ending[:2] != "..":
        is_quoted = ending[-1] in "\"”’'"
        if marks == start or (not is_quoted and _is_shortened(line, start, marks)):
            return False
        return not first.islower()
    return ending[0] in "!?！？．" or (ending[0] in "….." and first.isupper())


def _is_shortened(line: str, start: int, end: int) -> bool:
    """Whether a full stop at `end` belongs to the word before it: an abbreviation, an initial or an item's number."""
    if end - start <= _ITEM_CHARS and _ITEM_NUMBER.fullmatch(line, start, end):
        return True
    begin = max(start, end - _ABBREVIATION_CHARS)
    match = _LAST_WORD.search(line, begin, end)
    return match is not None and _ABBREVIATION.fullmatch(line, match.start(), end) is not None


def is_torn(text: str) -> bool:
    """Whether words of Latin letters are torn into single letters, as `i t d t d k f`."""
    letters = [letter for letter in _SINGLE_LETTER.findall(text) if letter not in _REAL_LETTERS]
    return len(letters) >= _LEAST_LETTERS and len(letters) >= _LETTER_SHARE * len(_LETTERS.findall(text))
