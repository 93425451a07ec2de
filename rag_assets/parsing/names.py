"""What the text of a cell is: a value such as a number or a date, a period of time, or a word that names values.

Names of columns and of the fields of forms are a small class of words in every language: `作成者`, `単価`, `Status`.
"""

import re
import unicodedata
from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise

from rag_assets.text.plain import one_line


def _alternatives(words: str) -> str:
    return "|".join(map(re.escape, words.split()))


_NUMBER = re.compile(
    r"[-+△▲(<]? ?[¥$€£]?(?:\d{1,3}(?: \d{3})+|\d[\d,]*)(?:\.\d+)?%?[)>]?|=[^=\s].*|-?[\d.]+e[-+]?\d+", re.IGNORECASE
)
_DATE = re.compile(
    r"(?:\d{4}|[mtshr]?\d{1,2}|(?:明治|大正|昭和|平成|令和)(?:\d{1,2}|元))\s?[-/.年]\s?\d{1,2}(?:\s?[-/.月]\s?\d{1,2}日?)?(?:月)?"
    r"(?:\s?\(.{1,30}\))*(?:\s\d{1,2}:\d{2}(?::\d{2})?)?|\d{1,2}月\d{1,2}日|\d{1,2}:\d{2}(?::\d{2})?",
    re.IGNORECASE,
)
_PERIOD = re.compile(
    r"(?:fy|cy|h|r|s|')\s?'?\d{1,4}(?:年度?)?|(?:19|20)\d{2}(?:年度?|年\d{1,2}月(?:期|末|度)?|年\s?\d?q|/\d{1,2})|\d{1,4}年度?"
    r"|(?:明治|大正|昭和|平成|令和)(?:\d{1,2}|元)年度?(?:\d{1,2}月)?|\d{1,2}月(?:\d{1,2}日|度|末|分)?|\d{1,2}日|第?\d{1,2}(?:四半期|週|期|回|年目)"
    r"|[1-4]\s?q|q\s?[1-4](?:\s?(?:fy)?'?\d{2,4})?|(?:上|下|前|後|通|当|今|来|半)(?:半?期|月|年度?)|前年度?|翌年度?|w\d{1,2}|week\s?\d{1,2}"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)(?:uary|ruary|ch|il|e|y|ust|tember|ober|ember)?\.?(?:[-\s,']{0,2}\d{2,4})?"
    r"|[月火水木金土日](?:曜日?)?|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}",
    re.IGNORECASE,
)
_CODE = re.compile(r"(?=.*[\d_])[\w./:#+-]+|[A-Za-z]{1,2}", re.ASCII)
_MARK = re.compile(r"[○◯●◎×✕✓✔☑☐△▲◉レ※\-－―—ー/／*＊]{1,2}|\.{3}|[有無]|なし|あり")
_LINK = re.compile(r"(?:https?|ftp)://\S+|[\w.+-]+@[\w-]+\.[\w.-]+", re.ASCII)
_SENTENCE_CHARS = 30
_LOOKED_AT_CHARS = 100
_COUNT_DIGITS = 5
_YEAR_DIGITS = 4
_ASIDE = re.compile(r"[(\[〔<].{0,30}[)\]〕>]$|[*※:]+$")
# Words that name fields, also as the last part of longer ones (`顧客名`); then those that do so alone (not `顧客登録`).
_ENDINGS = """
名 名称 氏名 番号 コード 符号 記号 区分 種別 種類 分類 カテゴリ カテゴリー レベル ランク id url fax tel 日 日付
日時 時刻 時間 期間 期限 納期 年 年月 年月日 年度 曜日 担当 担当者 責任者 作成者 承認者 更新者 登録者 利用者
使用者 依頼者 申請者 発行者 確認者 管理者 連絡先 取引先 宛先 提出先 出力先 部署 所属 部門 会社 住所 所在地 電話
電話番号 メール アドレス 件名 題名 表題 タイトル 概要 説明 詳細 内容 目的 用途 備考 摘要 補足 事項 注記 コメント
メモ 理由 原因 結果 状態 状況 ステータス 優先度 重要度 版 版数 バージョン リビジョン 金額 単価 価格 料金 費 費用
税率 売上高 予算 数 数量 個数 件数 人数 回数 桁数 行数 ページ数 長さ サイズ 容量 単位 割合 比率 率 値 型 属性
形式 書式 方法 方式 手段 手順 条件 場所 会場 対象 範囲 項目 項番 パス ドメイン 権限 役職 役割 年齢 性別 国籍
職業 パラメータ 引数 戻り値 略称 フリガナ 根拠 制約 課題 対策
"""
_ALONE = """
作成 更新 登録 承認 確認 発行 変更 改訂 改版 査閲 審査 対応 処理 機能 画面 帳票 業務 工程 フェーズ 進捗 グループ
体制 システム プロジェクト サブシステム モジュール テーブル カラム スキーマ ファイル フォルダ ページ キー 順
順序 必須 任意 既定 税 桁 計 合計 小計 ホスト ポート サーバ サーバー os cpu メモリ ディスク ネットワーク
データベース ミドルウェア ソフトウェア ハードウェア フレームワーク ライブラリ 言語 使用言語 開発言語 環境 製品
ツール メソッド 認証 文字コード 例外 メッセージ 読み ふりがな 参加者 出席者 欠席者 議題 出典 参考 参照 関連 前提
制限 効果 リスク 影響 売上 利益 実績 設立 資本金 代表者 国 入力元 参照先 身長 体重 学歴 趣味
"""
_ENGLISH_ENDINGS = """
no no. number id code key name title subject type kind class category group level date time day period deadline
due author owner creator created updated approved reviewed reviewer approver assignee manager department
division section company organization organisation customer client project product system module address phone
tel fax email e-mail mail url uri path file version revision rev rev. ver ver. status state priority severity
description summary purpose scope remark remarks note notes comment comments detail details reason result value
default unit size length count amount price cost total quantity qty qty. rate format method location place
country city role position age sex gender required optional reference os cpu ip host port db item field column
parameter content contents by currency contact supplier vendor team environment tool budget goal objective risk
language schema table keyword keywords reporter start end begin
"""
_ENDING = re.compile(rf".*(?:{_alternatives(_ENDINGS)})|{_alternatives(_ALONE)}")
_ENGLISH = re.compile(rf"(?:[\w/ -]+ )?(?:{_alternatives(_ENGLISH_ENDINGS)})")
_GENERIC = re.compile(
    r"(?:設定|入力|出力|確認|管理|データ|記載)?項目名?|no\.?|#|項番|番号|連番|キー|key|items?|fields?|columns?|パラメータ名?|parameters?|属性名?|property|用語|略語|記号|変数名?"
    r"|カラム名?|列名|フィールド名?|論理名|物理名|テーブル名",
    re.IGNORECASE,
)
_VALUE_NAME = re.compile(
    r"(?:設定|初期|既定|入力|出力)?値|(?:設定|変更|入力|記載|記入|確認|処理)?内容|説明|名称|意味|備考|詳細|型|表示名|和名|英名|物理名|論理名|記入例|例|values?|descriptions?|remarks?"
    r"|notes?|meaning|details?",
    re.IGNORECASE,
)


class Kind(StrEnum):
    """What a text is."""

    EMPTY = "empty"
    NUMBER = "number"
    DATE = "date"
    PERIOD = "period"
    CODE = "code"
    MARK = "mark"
    LINK = "link"
    SENTENCE = "sentence"
    WORDS = "words"


_PATTERNS = {
    Kind.NUMBER: _NUMBER,
    Kind.DATE: _DATE,
    Kind.PERIOD: _PERIOD,
    Kind.LINK: _LINK,
    Kind.MARK: _MARK,
    Kind.CODE: _CODE,
}


def has_digit(text: str) -> bool:
    """Whether a text holds a digit of any script."""
    return any(map(str.isdecimal, text))


def plain(text: str) -> str:
    """A text without strikes, asides at its end, and differences of width and of white space."""
    if len(text) > _LOOKED_AT_CHARS:
        return text
    text = one_line(unicodedata.normalize("NFKC", text.strip("~")))
    return _ASIDE.sub("", text).strip() or text


def kind_of(text: str) -> Kind:
    """What a text is, told from its form alone."""
    if len(text) > _LOOKED_AT_CHARS:
        return Kind.SENTENCE
    text = plain(text)
    if not text:
        return Kind.EMPTY
    for kind, pattern in _PATTERNS.items():
        if pattern.fullmatch(text):
            return kind
    ends = text.endswith("。") or (text.endswith(".") and " " in text)
    return Kind.SENTENCE if ends or len(text) > _SENTENCE_CHARS else Kind.WORDS


def is_number(text: str) -> bool:
    """Whether a text is a number, or a formula that stands for one."""
    return kind_of(text) is Kind.NUMBER


def is_period(text: str) -> bool:
    """Whether a text is a year, month, day, quarter or the like; a bare number may be one as well (`is_series`)."""
    return kind_of(text) in {Kind.PERIOD, Kind.DATE}


def is_year(text: str) -> bool:
    """Whether a text is a bare year of four digits."""
    text = plain(text)
    return len(text) == _YEAR_DIGITS and text.isdecimal() and text[:2] in {"19", "20"}


def is_series(texts: Sequence[str]) -> bool:
    """Whether whole numbers count years, months or days: two or more years at one distance, or 3 numbers of 1 to 31."""
    plain_texts = [plain(text) for text in texts]
    if len(plain_texts) < 2 or not all(text.isascii() and text.isdecimal() and len(text) <= 4 for text in plain_texts):
        return False
    numbers = [int(text) for text in plain_texts]
    steps = {later - earlier for earlier, later in pairwise(numbers)}
    if all(1900 <= number < 2100 for number in numbers):
        return len(steps) == 1 and steps <= {-10, -5, -1, 1, 5, 10}
    ends = {1, -11, -27, -28, -29, -30} if max(numbers) > 12 else {1, -11}
    return len(numbers) > 2 and all(1 <= number <= 31 for number in numbers) and steps <= ends and 1 in steps


def is_count(texts: Sequence[str]) -> bool:
    """Whether several whole numbers count one by one, as those of rows do."""
    plain_texts = [plain(text) for text in texts]
    if len(plain_texts) < 2 or not all(
        text.isascii() and text.isdecimal() and len(text) <= _COUNT_DIGITS for text in plain_texts
    ):
        return False
    return all(int(later) - int(earlier) == 1 for earlier, later in pairwise(plain_texts))


def is_name(text: str) -> bool:
    """Whether a text could name a column: short words on one line that are no value."""
    return "\n" not in text.strip() and kind_of(text) in {Kind.WORDS, Kind.PERIOD} and len(text) <= _SENTENCE_CHARS


def is_attribute(text: str) -> bool:
    """Whether a text is of the words that name fields, such as `作成者`, `単価（円）` and `Due date`."""
    if len(text) > _LOOKED_AT_CHARS:
        return False
    text = plain(text).lower()
    return _ENGLISH.fullmatch(text) is not None or _ENDING.fullmatch(text.replace(" ", "")) is not None


def is_generic(text: str) -> bool:
    """Whether a text names a column of names, such as `項目名` and `Key`: no field of a form is called so."""
    return _GENERIC.fullmatch(plain(text).replace(" ", "")) is not None


def names_value(text: str) -> bool:
    """Whether a text names a column of values, such as `設定値`, `内容` and `Description`."""
    return _VALUE_NAME.fullmatch(plain(text).replace(" ", "")) is not None
