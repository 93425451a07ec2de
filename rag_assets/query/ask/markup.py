"""Answers without markup: no links, images or HTML, by which a model that a document misled could have a reader's
program send what it has read to somebody else. Only addresses that stand in the sources remain, as plain text.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from rag_assets.query.ask.answers import Sentence, Source
from rag_assets.text.plain import without_controls

_REMOVED = "(link removed)"
# an address with all of ASCII up to the next blank, since some programs take all of that into a link; also right behind
# Japanese text. Schemes are at most 30 letters long, so that the search takes linear time.
_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]{1,30}://|(?<![a-z])(?:www\.|(?:javascript|vbscript|mailto|tel):|data:[a-z]+/))[!-~]*"
    r"(?<![.,;:!?)\]}>*_'\"|])",
    re.IGNORECASE,
)
_IMAGE_OR_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]+\])")
_LINKS_NESTED = 8  # within each other that become their text: more are no text of a person's, and each costs a pass
_MARK = re.compile(r"\d+(?:\s*[,、，]\s*\d+)*")
_TAG = re.compile(r"<(?=[a-zA-Z/!?])(?:(?=/?([a-zA-Z][a-zA-Z0-9_.]*+)>))?")
# Elements of HTML, those of old as well. A tag of any other name without attributes, as in XML or `List<String>`, does
# nothing in a browser; one with attributes may, and a hyphen makes it an element that a page may have defined.
_ELEMENT_NAMES = """
    a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink blockquote body br
    button canvas caption center cite code col colgroup command content data datalist dd del details dfn dialog dir div
    dl dt element em embed fencedframe fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head
    header hgroup hr html i iframe image img input ins isindex kbd keygen label layer legend li link listing main map
    mark marquee math menu menuitem meta meter multicol nav nextid nobr noembed noframes noscript object ol optgroup
    option output p param picture plaintext portal pre progress q rb rp rt rtc ruby s samp script search section select
    selectedcontent shadow slot small source spacer span strike strong style sub summary sup svg table tbody td template
    textarea tfoot th thead time title tr track tt u ul var video wbr xml xmp
"""
_ELEMENTS = frozenset(_ELEMENT_NAMES.split())
_LINK_JOINT = re.compile(r"\](?=[(\[:])")
_WORD_CHARACTERS = "".join(map(chr, range(ord("!"), ord("~") + 1)))


def without_markup(text: str, evidence: str) -> str:
    """Text in which nothing is a link, an image or HTML.

    Links become their text, and images go. What is left of such markup cannot be read as one any more.
    """
    text, before, passes = without_controls(text), "", 0
    while text != before and passes < _LINKS_NESTED:  # images stand in links
        before, text, passes = text, _IMAGE_OR_LINK.sub(_text_of, text), passes + 1
    text = _ADDRESS.sub(lambda match: _address(match, evidence), text)
    return _LINK_JOINT.sub("] ", _TAG.sub(_tag, text))


def stable_beginning(text: str) -> str:
    """The beginning of a text that is still being written, as far as its markup cannot change by what follows."""
    before = ""
    while text != before:
        before, text = text, _without_open_brackets(text.rstrip(_WORD_CHARACTERS))
    return text


def plain_sentences(sentences: Sequence[Sentence], sources: Sequence[Source]) -> tuple[Sentence, ...]:
    """Sentences without markup, their quotes as well."""
    evidence = evidence_of(sources)
    return tuple(
        replace(
            sentence,
            text=without_markup(sentence.text, evidence),
            citations=tuple(
                replace(citation, quote=without_markup(citation.quote, evidence)) for citation in sentence.citations
            ),
        )
        for sentence in sentences
    )


def evidence_of(sources: Sequence[Source]) -> str:
    """The text of sources, in which addresses may stand."""
    return "\n".join(f"{source.title}\n{source.whole_text}" for source in sources)


def _text_of(match: re.Match[str]) -> str:
    image, text = match.groups()
    if _MARK.fullmatch(text):  # the number of a source is no link
        return match[0]
    return "" if image else text


def _tag(match: re.Match[str]) -> str:
    return "‹" if match[1] is None or match[1].lower() in _ELEMENTS else match[0]


def _address(match: re.Match[str], evidence: str) -> str:
    if match[0] not in evidence:
        return _REMOVED
    next_char = match.string[match.end() : match.end() + 1]
    return match[0] if not next_char or next_char.isascii() else f"{match[0]} "  # what follows is no part of it


def _without_open_brackets(text: str) -> str:
    """The beginning of a text before the first brackets that are not closed, or may be the text of a link."""
    start = text.find("[")
    while start >= 0:
        match = _IMAGE_OR_LINK.match(text, start)
        end = match.end() if match else _end_of_brackets(text, start)
        if end is None or end >= len(text) or text[end] in "([":
            return text[:start].removesuffix("!")
        start = text.find("[", end)
    return text


def _end_of_brackets(text: str, start: int) -> int | None:
    depth = 0
    for index in range(start, len(text)):
        depth += {"[": 1, "]": -1}.get(text[index], 0)
        if depth == 0:
            return index + 1
    return None
