"""Lines that many documents share: told across the corpus, put behind the others, and followed when files change."""

from pathlib import Path

import pytest
from scripted_model import ScriptedModel
from small_lake import ignore, labelled, page, store

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block, Page
from rag_assets.contracts.tables import PAGE_SUMMARIES
from rag_assets.enrich.summaries.boilerplate import common_lines, line_key, shards_with_outdated_boilerplate
from rag_assets.enrich.summaries.tables import SummaryOptions, update_page_summaries
from rag_assets.models.language_models import ExtractiveModel
from rag_assets.models.structured import StructuredModel
from rag_assets.store.lake import SHARDS, Lake, shard_of

NOTE = "本書の内容は予告なく変更することがあるため、最新版は文書管理室に確認してください。"
DISCLAIMER = "本書の内容は予告なく変更することがあるため、配布の前に文書管理室に確認してください。"
LABELS = [("作成者", "承認者", "文書番号", "改訂番号"), ("管理区分", "社外秘", "保存期間", "十年")]
SUBJECTS = {
    "顧客": "顧客番号を採番して登録する。",
    "在庫": "在庫数を倉庫ごとに引き当てる。",
    "請求": "請求額を月末に締める。",
}
OPTIONS = SummaryOptions(120, 20, 52, 800, boilerplate_documents=3)


def form(subject: str) -> list[Page]:
    lines = (NOTE, DISCLAIMER, SUBJECTS.get(subject, subject))
    return [page(labelled(*LABELS), *(Block(BlockKind.PARAGRAPH, line) for line in lines), name="概要")]


def name(subject: str) -> str:
    return f"specs/{subject}.xlsx"


def summarize(lake: Lake, shards: tuple[str, ...] = SHARDS) -> int:
    return update_page_summaries(lake, shards, ExtractiveModel(), OPTIONS, ignore).total().computed


def texts(lake: Lake) -> dict[str, str]:
    return {row["document_id"]: row["text"] for row in lake.read(PAGE_SUMMARIES).to_pylist()}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_a_line_is_the_same_whatever_its_width_case_and_spaces() -> None:
    assert line_key("ＡＰＩ 一覧") == line_key("api一覧")
    assert line_key("E0004") != line_key("E0005")


def test_lines_of_three_documents_are_common(lake: Lake) -> None:
    store(lake, {name(subject): form(subject) for subject in SUBJECTS})
    summarize(lake)
    common = common_lines(lake, 3)
    assert NOTE in common
    assert " ".join(LABELS[0]) in common
    assert SUBJECTS["顧客"] not in common
    assert NOTE not in common_lines(lake, 4)
    assert NOTE not in common_lines(lake, 0)


def test_a_summary_says_first_what_others_do_not(lake: Lake) -> None:
    store(lake, {name("顧客"): form("顧客")})
    summarize(lake)
    assert SUBJECTS["顧客"] not in texts(lake)[name("顧客")]
    store(lake, {name(subject): form(subject) for subject in SUBJECTS})
    summarize(lake)
    for subject, sentence in SUBJECTS.items():
        assert sentence in texts(lake)[name(subject)]


def test_a_page_of_nothing_but_shared_lines_has_a_summary_all_the_same(lake: Lake) -> None:
    store(lake, {name(f"{number}"): form("顧客") for number in range(4)})
    summarize(lake)
    assert all(SUBJECTS["顧客"] in text or NOTE[:10] in text for text in texts(lake).values())
    assert len(texts(lake)) == 4


def test_the_third_document_of_a_format_makes_the_others_due(lake: Lake) -> None:
    documents = {name(subject): form(subject) for subject in ("顧客", "在庫")}
    store(lake, documents)
    summarize(lake)
    assert not shards_with_outdated_boilerplate(lake, 3)
    documents[name("請求")] = form("請求")
    store(lake, documents)
    new = shard_of(name("請求"))
    others = {shard_of(each) for each in documents} - {new}
    summarize(lake, (new,))
    assert shards_with_outdated_boilerplate(lake, 3) == others
    assert summarize(lake) == len(others)
    assert not shards_with_outdated_boilerplate(lake, 3)


def test_a_language_model_is_told_the_shared_lines_and_not_asked_again_for_them(lake: Lake) -> None:
    model = ScriptedModel(lambda _: {"file": "設計書", "page": "要約"})
    options = SummaryOptions(120, 20, 20, 800, boilerplate_documents=3)
    documents = {name(subject): form(subject) for subject in ("顧客", "在庫")}
    for subject in (None, "請求", "出荷"):
        if subject:
            documents[name(subject)] = form(subject)
        store(lake, documents)
        update_page_summaries(lake, SHARDS, StructuredModel(model), options, ignore)
    asked = model.asked
    assert [request.tag.document_id for request in asked[2:]] == [name("請求"), name("出荷")]
    alone, in_company = asked[0].messages[0].text, asked[2].messages[0].text
    assert (alone.count(NOTE), in_company.count(NOTE)) == (1, 2)


def test_another_number_of_documents_makes_stored_summaries_of_a_model_due(lake: Lake) -> None:
    model = ScriptedModel(lambda _: {"file": "設計書", "page": "要約"})
    store(lake, {name(subject): form(subject) for subject in SUBJECTS})
    for least in (4, 4, 3):
        options = SummaryOptions(120, 20, 20, 800, boilerplate_documents=least)
        update_page_summaries(lake, SHARDS, StructuredModel(model), options, ignore)
    assert len(model.asked) == 2 * len(SUBJECTS)
    assert [request.messages[0].text.count(NOTE) for request in model.asked] == [1, 1, 1, 2, 2, 2]
