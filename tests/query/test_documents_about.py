"""Which documents say something of a topic."""

from pathlib import Path

import pytest

from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base
from rag_assets.pipeline.settings import load_settings
from rag_assets.query import Filters
from rag_assets.query.ask.overviews.documents_about import topic_of


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("人事関係の文書はどれ", "人事"),
        ("有給休暇について書いてある資料はどれですか", "有給休暇"),
        ("旅費に関するファイルを教えて", "旅費"),
        ("どの文書に個人情報の取り扱いが書かれていますか", "個人情報の取り扱い"),
        ("障害対応の手順はどのファイルにありますか", "障害対応の手順"),
        ("育児休業のことはどの文書に載っていますか", "育児休業"),
        ("パスワードについてはどの資料を見れば分かりますか", "パスワード"),
        ("どのファイルにエラー処理の説明がありますか", "エラー処理"),
        ("旅費の資料はどれ", "旅費"),
        ("Which document describes the release procedure?", "release procedure"),
        ("Where is the approval flow documented?", "approval flow"),
    ],
)
def test_questions_for_documents_by_a_topic(question: str, topic: str) -> None:
    assert topic_of(question) == topic


@pytest.mark.parametrize(
    "question",
    [
        "申請に必要な書類はどれですか",  # which are no files here
        "契約書に添付する資料は何ですか",
        "データベースとの接続を張る処理はどのファイルに書くことになっていますか。",
        "スマホから店ごとの頻度表を見るときのファイルはどれですか。",
        "マイページに使っているテンプレートのファイル名は？",
        "バッチを動かすと、どのファイルができますか？",
        "この資料は何について書いてありますか",
        "有給休暇に関する資料の概要",
        "有給休暇について書いていない資料はどれですか",
        "What does the file format of the export contain?",
    ],
)
def test_other_questions_have_no_topic(question: str) -> None:
    assert topic_of(question) is None


def test_documents_by_their_name_come_before_those_by_a_passage(sample_home: Path) -> None:
    base = knowledge_base(Home(load_settings(home=sample_home)))
    answer = base.ask("顧客登録に関する文書はどれですか")
    assert answer.answered and answer.text.startswith("関係する資料:")
    names = [sentence.text.partition(": ")[0] for sentence in answer.sentences]
    assert names[0] == "sample/設計書/システム機能設計書(Webサービス)_B10103_顧客登録.xlsx"
    assert len(names) == len(set(names))
    for sentence in answer.sentences:
        (citation,) = sentence.citations
        source = answer.sources[citation.number - 1]
        assert citation.supported and sentence.text.startswith(source.document_id)


def test_filters_hold_and_what_no_document_has_is_not_told(sample_home: Path) -> None:
    base = knowledge_base(Home(load_settings(home=sample_home)))
    answer = base.ask("顧客について書いてある文書はどれですか", filters=Filters(format=("pdf",)))
    assert not any("顧客登録" in sentence.text for sentence in answer.sentences)
    assert not base.ask("量子暗号について書いてある文書はどれですか").answered
