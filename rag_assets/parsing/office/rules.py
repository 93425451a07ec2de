"""Headings of rules and contracts that no style tells: chapters, articles, and what follows the articles.

Headings that their number and look tell are found in `headings`.
"""

import re
from collections.abc import Sequence

_CHAPTER_LEVELS = "編章節"
_CHAPTER = re.compile(
    rf"第\s?[\d一二三四五六七八九十百]{{1,3}}\s?(?P<kind>[{_CHAPTER_LEVELS}])(?:[\s:：].{{1,30}})?(?<![\d。])"
)
_NUMBER = r"第\s?[\d一二三四五六七八九十百]{1,4}\s?条(?:の[\d一二三四五六七八九十]{1,2})?"
_FIRST_ARTICLE = re.compile(r"第\s?[1１一]\s?条(?!の)")
_TITLE = r"[（(][^（）()\d:：]{2,25}[）)]"
_TITLE_ABOVE = re.compile(_TITLE)
_TITLED = re.compile(rf"{_NUMBER}\s?{_TITLE}[^。]{{0,40}}(?<![るたいす])")
_UNMARKED = re.compile(rf"{_NUMBER}\s[^\s、。は][^\s、。は]{{1,24}}(?<![るたいす])")
_BEGIN = re.compile(rf"{_NUMBER}\s(?!削除)")
_SUPPLEMENT = re.compile(
    r"(?:附\s?則|(?:別表|別紙|(?:別記)?様式)(?:第?\s?[\d一二三四五六七八九十]{1,3}号?(?:の[\d一二三四五六七八九十]{1,2})?)?"
    r"|第\s?\d{1,3}号様式)(?:\s?[（(][^（）()]{1,25}[）)])?(?:\s[^\s、。]{1,25})?(?<![るたいす])"
)

_BEGINS = "第（(附別様"  # of all of these


def is_article(text: str) -> bool:
    """Whether a line is an article with its title, as `第5条（休暇）` and `第5条 休暇`."""
    return _TITLED.fullmatch(text) is not None or _UNMARKED.fullmatch(text) is not None


class Rules:
    """Levels of the headings of rules, asked for in the order of the text."""

    def __init__(self) -> None:
        self.chapter_level = 0  # of the last heading that is no article
        self.has_chapters = False  # that no style tells
        self._is_styled = False
        self._outermost = 0  # level of the chapters
        self._has_first_article = False
        self._is_below_title = False
        self._unmarked, self._sentences = 0, 0  # articles of either form

    def pass_styled(self, text: str, level: int) -> None:
        """Go on below a heading that has a style."""
        self._is_styled = True
        self._is_below_title = False
        self.chapter_level = level - 1 if is_article(text) else level
        if _CHAPTER.fullmatch(text):
            self._outermost = min(self._outermost or level, level)
        elif level < self._outermost:
            self._outermost = 0

    def level(self, text: str, section: Sequence[str]) -> int:
        """Level of a paragraph that heads a part of rules, else 0.

        `第5条（休暇）` does so, one below its chapter, and `第5条 休暇` where articles are written that way, rather
        than as sentences or below their titles. `附則` and `別表` end the articles. Where nothing has the style of a
        heading, `第１章 総則` is one and, below such ones, `（休暇）`. Where something has, articles count from the
        first one or below chapters, as others are quoted.
        """
        if text[:1] not in _BEGINS:
            self._is_below_title = False
            return 0
        is_title = _TITLE_ABOVE.fullmatch(text) is not None
        is_below_title, self._is_below_title = self._is_below_title, is_title
        self._has_first_article = self._has_first_article or _FIRST_ARTICLE.match(text) is not None
        if _TITLED.fullmatch(text) or self._is_unmarked(text, is_below_title=is_below_title):
            is_rule = self._has_first_article or self._outermost > 0 or not self._is_styled
            return self.chapter_level + 1 if is_rule else 0
        if _SUPPLEMENT.fullmatch(text) and any(map(self._is_rule, section)):
            self._outermost = self.chapter_level = self._outermost or self.chapter_level + 1
            return self.chapter_level
        if self._is_styled:
            return 0
        if chapter := _CHAPTER.fullmatch(text):
            self.has_chapters = True
            self.chapter_level = _CHAPTER_LEVELS.index(chapter["kind"]) + 1
            self._outermost = min(self._outermost or self.chapter_level, self.chapter_level)
            return self.chapter_level
        return self.chapter_level + 1 if self.has_chapters and is_title else 0

    def _is_unmarked(self, text: str, *, is_below_title: bool) -> bool:
        """Whether a line is an article such as `第5条 休暇`, among articles that are mostly written so."""
        if not _BEGIN.match(text):
            return False
        if is_below_title or not _UNMARKED.fullmatch(text):
            self._sentences += 1
            return False
        self._unmarked += 1
        return self._unmarked >= self._sentences

    def _is_rule(self, text: str) -> bool:
        if is_article(text) or _SUPPLEMENT.fullmatch(text):
            return True
        return not self._is_styled and (_CHAPTER.fullmatch(text) or _TITLE_ABOVE.fullmatch(text)) is not None
