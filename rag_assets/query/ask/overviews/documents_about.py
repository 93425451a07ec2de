"""Which documents say something of a topic: 「有給休暇について書いてある資料はどれ」, "Which files mention refunds?".

Those whose name, folder or title holds the topic come first, in the order in which search finds them, then those of
which a passage does; where none holds it as it is said, those that hold all its words. Each is told with the line of it
that holds most of the topic. How many there are is not said: search looks at the best passages alone.

What stays out: which files there are (`rag_assets.query.ask.overviews.inventory`), and what documents are about
(`rag_assets.query.ask.overviews.overview`).
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rag_assets.query.ask.answers import AnswerParts
from rag_assets.query.ask.facts import STATEMENT_CHARS, FactWriter, PassagesOf, plain_name
from rag_assets.query.ask.overviews.inventory import KINDS_NAMED
from rag_assets.query.results import Hit
from rag_assets.text.folding import content_words, fold_name, shares_held
from rag_assets.text.language import cut
from rag_assets.text.plain import one_line

_QUESTION_CHARS = 200  # a longer one says more than a topic
_MOST_NAMED = 10  # documents
_MOST_BY_TEXT = 5  # of these, those that only a passage tells of
_CHARS = 1_500  # of an answer
_NAME_CHARS = 120
_FILES = "(?:ファイル|文書|資料|書類|ドキュメント)"
_WHICH = re.compile(
    rf"(?:どの|何の|どんな){_FILES}[にがでをは]?(?:見れば|読めば|参照すれば|確認すれば)?"
    rf"|{_FILES}(?:は|って|を|の|が)?(?:全部|すべて|全て)?(?:一覧|リスト|名前|どれ|どこ|何|教え|挙げ|知り|見せ|探し|あり?|$).*$"
)
_ABOUT = re.compile(
    "(?:に|と)?関[係連](?:の|する|した)|に(?:関|かん)(?:する|して)の?|についての?|にまつわる|の?こと(?=[がはを]|$)"
    "|(?:[がはをもに]|について)?(?:書い|載っ|書かれ|(?:記載|記述|説明|言及)(?:し|され)|定め(?:られ)?|まとめ(?:られ)?|触れ|述べ|扱っ|扱われ)"
    "(?:てい?(?:る|ます)|てあ(?:る|ります)|た)(?:の[はが]?)?|[のが]?(?:記載|記述|説明|言及)[のが]?あ(?:る|ります)"
    "|[がは]?(?:あ(?:る|ります)|分か(?:る|ります)|わか(?:る|ります))か?$"
)
_OF_KIND = re.compile(  # 「給与に関する規程はどれ」
    rf"^(?P<topic>[^、]{{1,20}}?)(?:に(?:関する|関した|ついての?|関係する)|が?(?:書か|載っ|記載さ)れ?てい?る)(?P<kind>{KINDS_NAMED})"
    r"(?:は|って|を)(?:どれ|どこ|何|ありますか|あるか|教え|挙げ|見せ|探し)[^、]{0,12}$"
)
_NAMED = re.compile(rf"^(?P<topic>[^はがをでとに、]{{1,15}})の{_FILES}(?:は|って|を|が)?(?:どれ|どこ|教え|あ)")
_AROUND = re.compile(r"^[\s、]+|(?:[はがをもにの、\s]|って|です|でしょう|か)+$")
_RELATED = re.compile("関[係連]$")
_ENGLISH = re.compile(
    r"\b(?:which|what) (?:of the )?(?:documents?|files?)\b[^?]*?"
    r"\b(?:describes?|mentions?|covers?|contains?|explains?|discuss(?:es)?|(?:is|are) (?:about|on)|talks? about"
    r"|deals? with|(?:has|have) (?:something|anything|information) (?:about|on)|says? (?:some|any)thing about)\b"
    r" (?:the |an? )?(?P<topic>[^?]+)"
    r"|\bwhere (?:is|are) (?:the |an? )?(?P<placed>[^?]+?) (?:described|documented|explained)\b",
    re.IGNORECASE,
)
_OTHERWISE = re.compile(
    "概要|要約|内容|必要|提出|添付|作成|以外|ない(?![でか])|除[いく]|何件|いくつ|最新|最も|一番|どう"
)
_OPENINGS = {"ja": "関係する資料:", "en": "Documents on this:"}


def topic_of(question: str) -> str | None:
    """What documents are to say something of; None of a question that asks for no documents by a topic."""
    text = unicodedata.normalize("NFKC", question).strip().rstrip("。?!")
    if len(text) > _QUESTION_CHARS or _OTHERWISE.search(text):
        return None
    if match := _OF_KIND.search(text):
        topic = match["topic"]
    elif match := (_ENGLISH.search(text) or _NAMED.search(text)):
        topic = next(filter(None, match.groups()))
    elif _WHICH.search(text) and _ABOUT.search(left := _WHICH.sub("", text)):
        topic = _AROUND.sub("", _ABOUT.sub("", left))
    else:
        return None
    topic = _RELATED.sub("", topic)
    return topic if content_words(topic) else None


def kind_of(question: str) -> str:
    """What kind of documents is asked for by a topic, as 規程, which their names tell; empty for any."""
    match = _OF_KIND.search(unicodedata.normalize("NFKC", question).strip().rstrip("。?!"))
    return match["kind"] if match else ""


def documents_about(
    topic: str, language: str, rows: Sequence[Mapping[str, Any]], hits: Sequence[Hit], passages_of: PassagesOf
) -> AnswerParts | None:
    """The documents that say something of a topic.

    Args:
        topic: The topic.
        language: Of what is said: `ja` or `en`.
        rows: `document_id` and `title` of the documents that may be named.
        hits: The passages found for the topic, best first.
        passages_of: The passages of documents.

    Returns:
        The documents, each with words of it; None where none holds all words of the topic.
    """
    words = content_words(topic)
    texts = {row["document_id"]: f"{row['document_id']} {row['title']}" for row in rows}
    passages = {hit.chunk_id: f"{texts.get(hit.document_id, '')} {hit.citation} {hit.text}" for hit in hits}
    holds = partial(_has_phrase, fold_name(topic))
    if not any(map(holds, [*texts.values(), *passages.values()])):
        holds = partial(_has_words, words)
    by_name = [document for document, text in texts.items() if holds(text)]
    best_hits: dict[str, Hit] = {}
    for hit in sorted(hits, key=lambda hit: (not holds(passages[hit.chunk_id]), hit.rank)):
        best_hits.setdefault(hit.document_id, hit)
    by_text = [
        document for document, hit in best_hits.items() if document not in by_name and holds(passages[hit.chunk_id])
    ]
    ranks = {document: hit.rank for document, hit in best_hits.items()}
    named = sorted(by_name, key=lambda document: (ranks.get(document, len(hits) + 1), document))
    chosen_documents = [*named, *by_text[:_MOST_BY_TEXT]][:_MOST_NAMED]
    first_passages = passages_of([document for document in chosen_documents if document not in best_hits], ())
    writer = FactWriter([*best_hits.values(), *first_passages], _CHARS)
    for document in chosen_documents:
        found = best_hits.get(document)
        cited = (found, _telling_line(words, found)) if found is not None else writer.beginning(document)
        if cited is not None:
            writer.add(f"{plain_name(document, _NAME_CHARS)}: {one_line(cited[1])}", [cited])
    if not writer.sentences:
        return None
    return AnswerParts(tuple(writer.sentences), tuple(writer.sources), _OPENINGS[language])


def _has_phrase(phrase: str, text: str) -> bool:
    """Whether a text holds a folded phrase, one of Latin letters as words of its own."""
    return re.search(rf"(?<![a-z\d]){re.escape(phrase)}(?![a-z\d])", fold_name(text)) is not None


def _has_words(words: list[tuple[str, ...]], text: str) -> bool:
    return all(share == 1 for share in shares_held(words, text))


def _telling_line(words: list[tuple[str, ...]], hit: Hit) -> str:
    """The first line of a passage that holds most of the words."""
    lines = [line for line in map(one_line, hit.text.splitlines()) if content_words(line)] or [one_line(hit.text)]
    best = max(lines, key=lambda line: sum(shares_held(words, line)))
    return cut(best, STATEMENT_CHARS, strictly=True)
