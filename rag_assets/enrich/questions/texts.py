"""Which texts of a document can serve in a question or an answer: names, labels, headings, sentences, data; what the
document is called; and of a table, which columns name its rows, and which of their cells tell something about them.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from rag_assets.text.language import is_japanese, split_sentences
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import ITEM_LETTERS, KANJI, KATAKANA

ANSWER_CHARS = 400
_LINE_CHARS = 4000
LETTER = re.compile(r"[^\W\d_]")
LABEL_CHARS = {"ja": 20, "en": 40}  # of a label or a column name, at most

_MARK = re.compile(r"[\s○〇◯×✕△▲◎●■□☑☐✓✔レ―‐－—–\-ー*＊・…./／:：()（）\[\]~〜～|｜+=<>＜＞]*")
_NUMBERING = re.compile(
    r"^\s*(?:[■◆●▼◇□○・※*#]+\s*)*(?:第\s*\d{1,3}\s*[章節編部]\s*"
    r"|\d{1,3}(?:[.．\-－]\d{1,3})*\s*(?:[.．章節編部)）]|(?=\s|[^\W\d_]))\s*"
    rf"|[(（]\s*[\d{ITEM_LETTERS}]{{1,3}}(?:[-.－]\d{{1,3}})*\s*[)）]\s*|[①-⑳]\s*|[IVX]{{1,4}}[.．]\s+)*"
)
_EMPTY_WORDS = frozenset(
    {"-", "なし", "無し", "なし。", "同上", "n/a", "na", "none", "n.a.", "tbd", "未定", "yes", "no"}
)
_POINTING_ELSEWHERE = re.compile(r"(?:参照|同様|同じ)。?$|^[(（]?(?:see|cf\.|same as)\b", re.IGNORECASE)
_ARROW = re.compile(r"[^→]{0,8}→[^→]{0,8}")
_FILLED_IN = re.compile(  # by a program, as in a form letter
    r"[《«]\s*[^\W\d]\w*\s*[》»]|\{\{[^{}]*\}\}|\$\{[^{}]*\}|\[\[[^\[\]]*\]\]"
)
_SAMPLE = re.compile(r"^(?:サンプル|sample|ダミー|dummy)", re.IGNORECASE)
_HOLLOW = re.compile(
    r"(?:参照|参照のこと|参照してください)。?$"
    r"|^.{0,60}(?:次|以下|下記|下表|左記)(?:の|に)?(?:通り|とおり|ような|示す|従|が挙げ|を行|を確認|を実施|を設定)"
    rf"|(?<![\d{KANJI}{KATAKANA}])(?:以下|下記|下図|下表)の"
    r"|(?:の通り|のとおり)(?:です|である|とする)。?$"
    r"|as follows|the following|(?:listed|shown|described|given) (?:below|above)|^See\b|:$",
    re.IGNORECASE,
)
_HEADER_WORD = re.compile(
    r"(?:名|名称|id|備考|説明|内容|概要|定義|仕様|型|桁数|文字列|値|順|番|番号|属性|必須|補足|要否|可否|有無|単位|多重度|区分|種別)\d*"
    r"(?:\s*[(（][^)）]*[)）])?$",
    re.IGNORECASE,
)
_RECORD_LABEL = re.compile(
    r"(?:作成|更新|変更|改訂|改定|承認|確認|審査|査閲|検印|登録|発行|記入|実施)(?:日付|日時|年月日|日|者|者名|担当者?)"
    r"|版数?|(?:created|updated|modified|changed|approved|reviewed|checked|revised|issued)(?: by| on| at| date)?"
    r"|(?:author|approver|reviewer|revision|version)",
    re.IGNORECASE,
)
_NO_LABELS = frozenset(
    (
        *("note", "notes", "source", "sources", "example", "examples", "warning", "http", "https", "see", "e.g."),
        *("i.e.", "figure", "fig", "table", "also", "and", "or", "but", "however", "therefore", "thus", "the", "a"),
        *("an", "this", "these", "that", "it", "if", "when"),
    )
)
_SMALL_WORDS = frozenset(
    (
        *("of", "for", "and", "the", "in", "to", "on", "a", "an", "or", "with", "by", "from", "at", "that"),
        *("which", "who", "not", "also", "only"),
    )
)
SHORTEST_ANSWER = 2

SUBJECT_CHARS = 40  # of what a document is about, and of its kind
_DOCUMENT_TYPE = re.compile(
    r"(?:書|表|一覧|図|標準|規約|規程|ガイド|マニュアル|資料|解説|ノート|台帳|定義|仕様)(?:[(（].*[)）])?$"
)
_PLACEHOLDER = re.compile(
    r"^[(（].*[)）]$|^(?:サンプル|samples?|images?|documents?|untitled|無題|新規|sheet|シート|book|file|output|report|data|table|page|別紙|付録|別添|別冊"
    r"|添付|資料|補足|概要|本文|全体版)[\s\d-]*$|^[a-z]?\d*[a-z]?$|^第?\d+(?:年度?)?版?$|^v?\d[\d.]*$",
    re.IGNORECASE,
)

_NUMBER_HEADER = re.compile(r"(?:no\.?|№|#|番号|項番|項|連番|通番|行番号?|.{0,8}no\.?|seq|s/n)\.?", re.IGNORECASE)
_NAME_HEADER = re.compile(
    r"(?:名|名称|名前|氏名|件名|題名|題目|タイトル|項目|品目|用語|コード|ID|name|title|subject|term|item|code|model)$",
    re.IGNORECASE,
)
_TELLING_HEADER = re.compile(
    r"(?:例|サンプル値?|説明|備考|型|桁数?|初期値|examples?|remarks?|description)(?:\s*[(（].*[)）])?$", re.IGNORECASE
)
_CLASS_HEADER = re.compile(r"(?:項目|分類|区分|種別|観点|カテゴリー?|category|class|group|type)\d*$", re.IGNORECASE)
_CODE_HEADER = re.compile(r"(?:コード|ID|番号|code|number)\)?$", re.IGNORECASE)
_CODE = re.compile(r"(?=[A-Za-z0-9_./-]*\d)(?=[A-Za-z0-9_./-]*[A-Za-z])[A-Za-z0-9_./-]{3,}")
_PATH = 2  # columns that name rows together, at most
_OFTEN = 8  # rows that may say the same
_CELLS = 2  # of a row
_HEADER_CHARS = 40  # of the column that names rows; a longer one is a title above the table
KEY_CHARS = 70


def plain_heading(text: str) -> str:
    """A heading without its numbering and marks."""
    plain = _NUMBERING.sub("", one_line(text)).strip(" :：。.<>＜＞《》")
    if plain.startswith("【") and plain.endswith("】") and plain.count("【") == 1:
        plain = plain[1:-1]
    return re.sub(r"[（(]\s*\d+\s*/\s*\d+\s*[)）]", "", plain).strip()


def is_section_name(text: str, language: str) -> bool:
    """Whether a heading can name its section in a question: no data, no whole or cut-off sentence."""
    if not 2 <= len(text) <= (40 if language == "ja" else 90) or is_data(text) or "|" in text:
        return False
    if len(LETTER.findall(text)) < 2 or language == "ja":
        return len(LETTER.findall(text)) >= 2 and not re.search(r"(?:。|参照|[:：]|へ|戻る)$", text)
    words = text.lower().split()
    whole_sentence = len(words) > 5 and bool({"is", "are", "was", "were", "has", "have"} & set(words))
    return (
        not is_small_word(words[-1])
        and not re.search(r"[a-z)]\. \S", text)
        and (not whole_sentence or text.endswith("?"))
    )


def is_label(text: str, language: str) -> bool:
    """Whether a text can be the label of a value."""
    if not 2 <= len(text) <= LABEL_CHARS[language] or is_data(text) or folded(text) in _EMPTY_WORDS:
        return False
    if language == "ja":
        return is_japanese(text) and not re.search(
            r"^[※\[［<＜]|^(?:この|その|これ|それ)|^(?:図|表|写真|別表|事例|類型|例)[\s\d.-]*$|[。、！？「」【】…]|(?:について|については|する|した|です|ます|場合|とき|例|注|注意|参考|補足|備考|選択肢|資料|出典|出所)$",
            text,
        )
    words = text.split()
    return "=" not in text and len(words) <= 4 and words[0][:1].isupper() and words[0].lower() not in _NO_LABELS


def says_something(text: str) -> bool:
    """Whether a cell or a value says something: no mark or short arrow, no empty word, no pointer to elsewhere, nothing
    that a program fills in.
    """
    if _FILLED_IN.search(text):
        return False
    words = text.split()
    if len(words) > 2 and len(set(words)) * 3 <= len(words):  # the same over and over
        return False
    if len(text) < SHORTEST_ANSWER or _ARROW.fullmatch(text) or _MARK.fullmatch(text) or text.lower() in _EMPTY_WORDS:
        return False
    return not (_POINTING_ELSEWHERE.search(text) or _SAMPLE.match(text) or ("☐" in text and "☑" not in text))


def is_data(text: str) -> bool:
    """Whether a text is more figures and signs than words."""
    letters = len(LETTER.findall(text))
    return letters * 2 < len(text.replace(" ", "")) or bool(_MARK.fullmatch(text))


def is_sentence(text: str, language: str) -> bool:
    """Whether a text reads like a whole sentence that was not cut off."""
    if language == "ja":
        return 8 <= len(text) <= ANSWER_CHARS and bool(
            re.search(r"(?:[。！]|(?:です|ます|する|こと|である|ない|れる|た))[)）」]?$", text)
        )
    return (
        25 <= len(text) <= ANSWER_CHARS
        and text[0].isupper()
        and bool(re.search(r"[.!][)\"”]?$", text))
        and "  " not in text
    )


def joined(text: str, language: str) -> str:
    """Lines of a paragraph as one where the document broke them in the middle of a sentence."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    result = ""
    for line in lines:
        if language == "ja":
            ends = (
                not result
                or result[-1] in "。！？」）)】"
                or len(result.rpartition("\n")[2]) < 15
                or line[0] in "・■●※(（①②③-"
            )
            result += ("\n" if result and ends else "") + line
        else:
            ends = not result or result[-1] in ".!?:" or (line[:1].isupper() and len(result.rpartition("\n")[2]) < 40)
            result += ("" if not result else "\n" if ends else " ") + line
    return result


def folded(text: str) -> str:
    """A text as it is compared: NFKC, lower case, without blanks."""
    return unicodedata.normalize("NFKC", text).lower().replace(" ", "")


def sentences(text: str, language: str | None = None) -> list[str]:
    """Sentences of a text; of very long lines, which are data, the beginning."""
    return [sentence for line in text.splitlines() for sentence in split_sentences(line[:_LINE_CHARS], language)]


def is_hollow(sentence: str) -> bool:
    """Whether a sentence says only that something stands elsewhere."""
    return bool(_HOLLOW.search(sentence))


def is_header_word(text: str) -> bool:
    """Whether a text is a word that heads columns."""
    return bool(_HEADER_WORD.search(text))


def is_record_label(text: str) -> bool:
    """Whether a text is the label of who wrote, changed or approved a document and when, which every document bears."""
    return _RECORD_LABEL.fullmatch(text.strip(" :：")) is not None


def is_small_word(word: str) -> bool:
    """Whether an English word cannot end a name."""
    return word.lower() in _SMALL_WORDS


def is_placeholder(name: str) -> bool:
    """Whether the name of a file or a part of it says nothing of what it holds, as `a1` and `report`."""
    return _PLACEHOLDER.match(name) is not None


def names_document(name: str) -> bool:
    """Whether a Japanese name says that a document is called so, as 報告書 does."""
    return _DOCUMENT_TYPE.search(name) is not None


def document_subject(document_id: str, title: str, language: str) -> tuple[str, str]:
    """What a document is about, and what kind of document it calls itself, from its title.

    `テーブル定義書_B1_顧客管理システム` is about 顧客管理システム, and a テーブル定義書. What the title does not say
    is an empty text.
    """
    stem = PurePosixPath(document_id).stem
    name = one_line((title or stem).replace("Microsoft Word - ", ""))
    name = re.sub(r"\.(?:docx?|xlsx?|pptx?|pdf)$", "", name, flags=re.IGNORECASE)
    if language != "ja":
        spaced_name = one_line(re.sub(r"[_]+", " ", name))
        return (spaced_name if len(spaced_name) <= 2 * SUBJECT_CHARS and " " in spaced_name else ""), ""
    parts = [part.strip() for part in re.split(r"[_＿]", name) if part.strip()]
    kinds = [part for part in parts if _DOCUMENT_TYPE.search(part)]
    topics = [part for part in parts if part not in kinds and not is_placeholder(part) and LETTER.search(part)]
    kind = kinds[0] if kinds and len(kinds[0]) <= SUBJECT_CHARS else ""
    topic = topics[-1] if topics and 2 <= len(topics[-1]) <= SUBJECT_CHARS else ""
    return topic, kind


def key_columns(header: Sequence[str], columns: Sequence[Sequence[str]]) -> tuple[tuple[int, ...], bool]:
    """The columns that name rows, and whether each row has a name of its own.

    That is the first column with texts that are nearly all different, no running number, names and codes before others;
    where there is none, of the columns of classes and subclasses before those that describe them the two side by side
    that tell most rows apart.
    """
    best: tuple[float, int] | None = None
    classes: list[int] = []
    has_description = False
    for column, name in enumerate(header):
        values = columns[column]
        texts = [value for value in values if value]
        if not name or not _is_header(name) or _is_one_of(name, texts) or len(texts) < max(1, len(values) // 2):
            continue
        if _TELLING_HEADER.search(name) or len(name) > _HEADER_CHARS:
            continue
        names = [value for value in texts if says_something(value)]
        if sum(can_be_key(value, name) for value in names) < max(1, 0.6 * len(names)):
            has_description = has_description or bool(classes)
            continue
        distinct = len(set(texts)) / len(texts)
        if distinct < 0.6:
            classes += [] if has_description else [column]
            continue
        lengthy = sum(len(value) > 20 for value in texts) / len(texts)
        score = distinct - 0.1 * column - 0.2 * lengthy + 0.8 * bool(_NAME_HEADER.search(name))
        score += 0.1 * all(map(_CODE.fullmatch, texts))
        if best is None or score > best[0]:
            best = score, column
    if best is not None:
        return (best[1],), True
    paths = [tuple(classes[max(0, end - _PATH) : end]) for end in range(1, len(classes) + 1)]
    row_counts = [len(set(zip(*(columns[column] for column in path), strict=True))) for path in paths]
    return (paths[row_counts.index(max(row_counts))] if paths else ()), False


def group_column(
    header: Sequence[str], columns: Sequence[Sequence[str]], row: int, column: int, key: int
) -> int | None:
    """The column before the key whose value a cell tells about where both stand for the same several rows, as cells
    merged over the rows of a code do; names and codes before others, None where the cell tells about its own row.
    """
    run = _run(columns[column], row)
    if len(run) == 1:
        return None
    group_columns = [
        candidate
        for candidate in range(min(column, key))
        if columns[candidate][row] and _is_header(header[candidate]) and _run(columns[candidate], row) == run
    ]
    return min(
        group_columns, key=lambda candidate: (not _NAME_HEADER.search(header[candidate]), candidate), default=None
    )


def _run(values: Sequence[str], row: int) -> range:
    """The rows around a row that hold the same value without a gap."""
    first, last = row, row + 1
    while first and values[first - 1] == values[row]:
        first -= 1
    while last < len(values) and values[last] == values[row]:
        last += 1
    return range(first, last)


def can_be_key(text: str, header: str = "") -> bool:
    """Whether a cell can name its row; figures can under a header that says that they are codes."""
    if re.fullmatch(r"[0-9A-Za-z_./-]{2,80}", text) and (_CODE_HEADER.search(header) or LETTER.search(text)):
        return bool(_CODE_HEADER.search(header)) or len(LETTER.findall(text)) >= 2
    if not 2 <= len(text) <= KEY_CHARS or text.endswith(("。", ":", "：")):
        return False
    return bool(LETTER.search(text)) and not is_data(text) and says_something(text)


def column_title(path: str) -> str:
    """The lowest header of a column, with those above it where it says nothing by itself (a unit, a year)."""
    parts = path.split(" > ")
    title = parts.pop()
    while parts and (is_data(title) or title.startswith(("(", "（"))):
        above = parts.pop()
        title = above if is_data(title) and not title.startswith(("(", "（")) else f"{above} {title}"
    return " ".join(dict.fromkeys(one_line(title).split()))


def _is_one_of(header: str, values: Sequence[str]) -> bool:
    """Whether a header looks like the cells under it, as where the first row was taken for one: `SMITH, J`."""
    return "," in header and sum("," in value for value in values) * 2 > len(values)


def _is_header(title: str) -> bool:
    return (
        bool(LETTER.search(title))
        and not _NUMBER_HEADER.fullmatch(title)
        and not re.search(r"(?:[:：。]|No\.?)$", title)
    )


def telling_columns(
    header: Sequence[str],
    columns: Sequence[Sequence[str]],
    values: Sequence[Counter[str]],
    row: int,
    keys: Sequence[int],
    language: str,
) -> list[int]:
    """The columns of a row whose cells say most: long and rare in their column first, at most `_CELLS`, none a mark, an
    empty word, what most or many rows say, or the class that several rows belong to.
    """
    name = folded(columns[keys[-1]][row])
    ranking = []
    for column, title in enumerate(header):
        value = columns[column][row]
        if column in keys or not 2 <= len(title) <= LABEL_CHARS[language] or title in {header[key] for key in keys}:
            continue
        if not _is_header(title) or not says_something(value):
            continue
        if is_header_word(value) and is_header_word(name):  # a row of headers within the table
            continue
        if folded(value) == name or (folded(value) in name and len(value) > 1) or title in value:
            continue
        count, total = values[column][value], len(columns[column])
        if (total >= 4 and count * 2 > total) or count > _OFTEN:
            continue
        is_class = count > 1 and column < keys[0]
        if is_class and (_CLASS_HEADER.search(title) or group_column(header, columns, row, column, keys[0]) is None):
            continue
        ranking.append((-min(len(value), 60) * (1.5 - count / total), column))
    return [column for _, column in sorted(ranking)[:_CELLS]]
