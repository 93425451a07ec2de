"""Mode `auto`: how a question is searched.

Questions about documents as a whole are searched by `graph_global` where there are community reports, all others by
`weighted`. A question that refers back to a conversation is judged together with the questions that it refers to, and
rewritten before it is searched.

A question is about documents as a whole (all of them, a folder, or those that it names together) where it asks for
themes, an overview or what there is, of several documents at once: 「この資料群の主なテーマは」, "What is in the folder
specs?". A question about one document, or what stands in one, is none of them.
"""

import re
import time
import unicodedata
from dataclasses import replace

from rag_assets.contracts.modes import GRAPH_GLOBAL_MODE, REWRITE_MODE, WEIGHTED_MODE
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.graph_local import HOW_TO_INDEX
from rag_assets.query.search.modes import SearchParameters
from rag_assets.query.search.request import Indexes
from rag_assets.query.search.rewriting_rules import refers_back, with_history
from rag_assets.text.scripts import KANJI, KATAKANA

_READ_CHARS = 1000  # of a longer text the beginning is judged

_DOCUMENTS = (
    "資料|文書|書類|ドキュメント|設計書|仕様書|ファイル|規程|規則|報告書|議事録|マニュアル|手順書|リリースノート"
)
_COLLECTED = (
    "(?<!添付)(?<!提出)(?<!申請)(?<!必要)(?<!必要な)(?<!設定)(?<!出力)(?<!ログ)(?<!する)(?<!した)(?<![こそ]の)(?<!本)"
    "(?:資料|文書|書類|ドキュメント)(?:群|類|一式)?"
)
_END_JA = "(?:です|でしょう|なの|か|[?？。]|$)"
_HOLDERS = "フォルダー?|ディレクトリ|コレクション|ナレッジベース|知識ベース"
_WHAT_JA = "(?:どんな|どのような|どういう|どういった)"
_SURVEYED_JA = (
    "テーマ|話題|トピック|題材|主題|論点|傾向|特徴|要約|まとめて|ざっくり|概要|概観|全体像|何につい|内訳|大きく分けて"
    f"|何が(?:書|あ[りる]|入|含|記)|(?:何|{_WHAT_JA}もの)が?(?:あり|入って|含まれ)|何を(?:扱|まとめ|決め|定め)"
    f"|{_WHAT_JA}(?:{_DOCUMENTS}|内容|種類|話題|情報)|何の(?:{_DOCUMENTS}|話)|種類|中心"
)
_MANY_DOCUMENTS_JA = (
    f"(?:{_DOCUMENTS})(?:群|一式|類|全体|全般|まわり|周り|の(?:集まり|まとまり|山))"
    f"|(?:これらの?|ここ(?:の|に(?:ある|入って(?:い)?る|登録され(?:てい|た)る?))|(?:登録|格納|収録)され(?:てい|た)る?)(?:[^、。]{{0,10}})(?:{_DOCUMENTS})"
    r"|\d+(?:本|件|冊|通|つ|ファイル)を?(?:通し|まとめ|読み?通)"
    f"|(?:関連|関係)(?:の|する)(?:{_DOCUMENTS})"
    f"|{_HOLDERS}"
)
_KINDS_JA = (
    f"{_WHAT_JA}(?:文書|資料|書類|ファイル|ドキュメント)(?:[がは](?:あり|ある|入|含|登録|格納)|の(?:まとまり|種類))"
    f"|(?:{_DOCUMENTS})[^、。]{{0,12}}題材"
    f"|(?:{_DOCUMENTS})(?:に|って)は?(?:何|{_WHAT_JA}(?:内容の?)?もの)が(?:あ[りる]|入|含)"
    f"|(?:{_DOCUMENTS})は[^、。]{{0,6}}何(?:件|本|種類)"
)
_NOUN_EN = (
    r"(?:documents?|docs|files|papers|reports|specs|specifications|materials|transcripts|notes|sheets|workbooks|records"
    r"|collection|corpus|folder|directory|knowledge\s?base|data\s?set|archive|library|calls|pdfs|slides|manuals)"
)
_THE_EN = r"(?:(?:all|everything|the|these|those|this|our|your|my|in|of)\s+){0,4}"
_NAMED_EN = r"(?:[\w\"'./-]+\s+){0,4}?"
_SURVEYED_EN = (
    rf"\bwhat(?:'s|\s+is|\s+are)\s+(?:{_THE_EN}){_NAMED_EN}{_NOUN_EN}\b.{{0,30}}?\b(?:about|for)\b"
    rf"|\b(?:summar(?:y|ies|i[sz]e)|overview|outline|survey)\b(?:\s+(?:of|for|on))?\s+{_THE_EN}{_NAMED_EN}{_NOUN_EN}\b"
    r"|\bwhat\s+can\s+(?:i|we|you)\s+find\s+in\s|\b(?:overview|tour|summary)\s+of\s+(?:everything|these\s)|\bwhat(?:'s|\s+is)\s+in\s+here\b"
    r"|\bwhat\s+(?:kinds?|types?|sorts?)\s+of\s+(?:documents|files|materials|records|content)\b"
    r"|\bwhat\s+(?:documents|files|materials)\s+(?:are|do|does|is|have|exist)\b(?!.*\b(?:describe|define|state|explain|need|require)"
    r"|.*\bmust\b)"
    r"|\bwhat(?:'s|\s+is|\s+are)\s+(?:there\s+)?(?:stored\s+|contained\s+)?(?:in|inside)\s+"
    r"(?:the\s+|this\s+|these\s+|our\s+)?(?:[\w\"'./-]+\s+)?(?:folder|directory|collection|corpus|archive|library|knowledge\s?base)\b"
    r"|\bwhat\s+(?:topics|subjects|themes|areas)\s+(?:do|does|are|is)\b.{0,40}\b(?:cover|covered|discussed?|deal|treat)"
    rf"|\bwhat\s+(?:do|does)\s+{_THE_EN}{_NAMED_EN}{_NOUN_EN}\s+(?:cover|contain|hold|have|deal\s+with|discuss|talk\s+about)\b"
)
_OF_A_NAME_JA = (  # documents that are told of together
    f"{_COLLECTED}の(?:概要|要約|概観|全体像|内訳|種類|あらまし)"
    f"(?:を(?:教え|示|まとめ|知り|挙げ|説明|お願い)|は(?:何|{_WHAT_JA})?{_END_JA}|は{_WHAT_JA}|って|について|{_END_JA})"
    f"|{_COLLECTED}を(?:要約|まとめて|概観)(?:して)?(?:くださ|下さ|ほし|欲し|もらえ|くれ|お願い|{_END_JA})"
    f"|{_COLLECTED}には?(?:主に|おもに|全体として)?(?:何|どんなこと|どのようなこと)が(?:書|記)"
    f"|何(?:の[^、。]{{1,8}})?(?:について|に関する|を説明した?)の?{_COLLECTED}{_END_JA}"
    f"|(?:{_WHAT_JA}種類の|(?:{_WHAT_JA}|何の)(?:プロジェクト|システム|サービス|案件|製品)の)(?:{_DOCUMENTS})"
    f"が?(?:あ[りる]|入|含|集め|格納|登録|揃)"
)
_FACT_ASKED = re.compile(r"桁|何(?:年|文字|日|件|行)|誰|いつ|どれ|上限|部数|欄|コード|版は|日付|必要")
_OF_A_NAME = re.compile(_OF_A_NAME_JA)
_QUOTES = re.compile(r"[「『][^「」『』]*[」』]")
_ABOUT_THE_WHOLE = re.compile(f"{_KINDS_JA}|{_SURVEYED_EN}", re.IGNORECASE)
_MANY_DOCUMENTS = re.compile(_MANY_DOCUMENTS_JA)
_SURVEYED = re.compile(_SURVEYED_JA)

_ALL_DOCUMENTS = re.compile(
    # a word of its own, not the beginning of one such as 全体会議
    rf"(?:全体|全般)(?:的|(?![{KANJI}{KATAKANA}])|(?=テーマ|トピック|論点|傾向|特徴|要約|概要|概観|一覧))|全文書|全資料|(?:全て|すべて|全部|あらゆる|各)の?(?:文書|資料|仕様|設計書|ファイル|ドキュメント|規程|報告書)"
    r"|(?:文書|資料|設計書|仕様書|ドキュメント)群"
    r"|\b(?:all|every|entire|whole|across|throughout)\s(?:of\s)?(?:the\s|these\s|our\s|your\s)?"
    r"(?:documents?|files?|collection|corpus|data\s?set|knowledge\sbase|spec(?:ification)?s?|materials?|texts?|records?|reports?)\b"
    r"|\b(?:overall|as\sa\swhole|in\sgeneral|in\stotal)\b",
    re.IGNORECASE,
)
_SURVEY = re.compile(
    r"テーマ|話題|トピック|論点|傾向|特徴|共通|要約|まとめ|概要|概観|一覧|列挙|何が書|何につい|どんな内容|どのような内容"
    r"|\b(?:themes?|topics?|trends?|patterns?|features?|summar(?:y|ies|i[sz]e)|overview|outline|list|takeaways?|in\scommon"
    r"|what\s(?:is|are).{0,40}\babout)\b",
    re.IGNORECASE,
)
_MAIN_THEMES = re.compile(
    r"(?:主な|主要な|おもな|全体的な|中心的な|繰り返し現れる)(?:テーマ|話題|トピック|論点|傾向|主題|題材)"
    r"|\b(?:main|major|key|overall|common|central|recurring|top)\s(?:themes?|topics?|trends?|patterns?)\b",
    re.IGNORECASE,
)


def choose_mode(
    query: str, parameters: SearchParameters, indexes: Indexes, trace: TraceRecorder, *, lacks_writer: bool
) -> SearchParameters:
    """The parameters of a search with the mode that `auto` chooses; the trace tells why, and what is lacking.

    Raises:
        StoreError: A file of the entity graph is missing or damaged.
    """
    began = time.perf_counter()
    follows = bool(parameters.history) and refers_back(query)
    resolved_query = with_history(query, parameters.history) if follows else query
    rule, mode, left_out = "any other", WEIGHTED_MODE, []
    if is_on_the_whole(unicodedata.normalize("NFKC", resolved_query[:_READ_CHARS])):
        reports = indexes.reports
        reason = None
        if reports is None or reports.row_count == 0:
            reason = f"there are no community reports: {HOW_TO_INDEX}"
        elif lacks_writer:
            reason = "answers from community reports need a language model"
        if reason is None:
            rule, mode = "the whole", GRAPH_GLOBAL_MODE
        else:
            left_out = [f"the whole: {GRAPH_GLOBAL_MODE} is left out: {reason}"]
    mode = f"{REWRITE_MODE}+{mode}" if follows else mode
    trace.add("choose", began, 1, texts=(f"rule: {'follow-up, ' * follows}{rule}", f"mode: {mode}", *left_out))
    return replace(parameters, mode=mode)


def is_on_the_whole(question: str) -> bool:
    """Whether a question is about documents as a whole."""
    text = unicodedata.normalize("NFKC", question[:_READ_CHARS])
    unquoted_text = _QUOTES.sub("「」", text)
    if _OF_A_NAME.search(unquoted_text) and not _FACT_ASKED.search(unquoted_text):
        return True
    if _MAIN_THEMES.search(text) or _ABOUT_THE_WHOLE.search(text):
        return True
    survey = _ALL_DOCUMENTS.search(text) and _SURVEY.search(text)
    return bool(survey or (_MANY_DOCUMENTS.search(text) and _SURVEYED.search(text)))
