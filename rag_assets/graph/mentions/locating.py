"""Finds names in a text where case, width, spacing and the like may differ."""

import re
import unicodedata
from bisect import bisect_left

_DASHES = re.compile("[\u2010-\u2015\u2212\uff0d]")
_LONG_VOWEL = "ー"


class FoldedText:
    """A text in which names are looked for as names are compared."""

    def __init__(self, text: str) -> None:
        self.text = text
        characters: list[str] = []
        self._places: list[int] = []
        for place, character in enumerate(text):
            for folded in _fold(character):
                characters.append(folded)
                self._places.append(place)
        self._folded = "".join(characters)

    def find(self, name: str, start: int, end: int, *, words: bool = True) -> tuple[int, int] | None:
        """The first place of a name within a part of the text.

        Args:
            name: The name, as somebody else spells it.
            start: Where the part begins.
            end: Where it ends.
            words: Whether a name of Latin letters must not be a part of a longer word.

        Returns:
            Start and end in the text, or None.
        """
        wanted = "".join(map(_fold, name))
        for form in dict.fromkeys((wanted, wanted.rstrip(_LONG_VOWEL))):
            position = self._folded.find(form, self._index(start)) if form else -1
            while position >= 0:
                first, last = self._places[position], self._places[position + len(form) - 1] + 1
                if last > end:
                    break
                if not words or self._is_word(first, last):
                    return first, last
                position = self._folded.find(form, position + 1)
        return None

    def _index(self, place: int) -> int:
        return bisect_left(self._places, place)

    def _is_word(self, first: int, last: int) -> bool:
        before, after = self.text[first - 1 : first], self.text[last : last + 1]
        return not (
            (before and _is_latin(before) and _is_latin(self.text[first]))
            or (after and _is_latin(after) and _is_latin(self.text[last - 1]))
        )


def _fold(character: str) -> str:
    folded = unicodedata.normalize("NFKD", character).casefold()  # composed and half-width marks become one
    return "".join("-" if _DASHES.match(each) else each for each in folded if not each.isspace())


def _is_latin(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")
