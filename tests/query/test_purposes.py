"""What documents say they are for."""

from pathlib import Path

import pytest
from graph_data import record, write

from rag_assets.contracts.tables import CHUNKS
from rag_assets.query.ask.overviews.purposes import Purpose, purposes
from rag_assets.query.stored import StoredTables
from rag_assets.store.lake import Lake, shard_of

DOCUMENT = "s/要件定義書.xlsx"


def found(folder: Path, *pages: str, document: str = DOCUMENT) -> Purpose | None:
    """What a document of some pages says it is for."""
    lake = Lake(folder)
    rows = [
        record(CHUNKS, document_id=document, shard=shard_of(document), page_number=page, chunk_id=str(page), text=text)
        for page, text in enumerate(pages, start=1)
    ]
    write(lake, CHUNKS, rows)
    return purposes([[document]], StoredTables(lake, {CHUNKS.name: lake.latest(CHUNKS)})).get(document)


@pytest.mark.parametrize(
    ("text", "said", "of_system"),
    [
        (
            "1. システム概要\n目的 | 作り手と依頼者をつなぐ仕組みを提供する。\n版 | 1.0",
            "作り手と依頼者をつなぐ仕組みを提供する。",
            True,
        ),
        (
            "はじめに\n本書は、顧客管理システムの機能を定めた設計書である。",
            "本書は、顧客管理システムの機能を定めた設計書である。",
            False,
        ),
        (
            "概要\n施設の情報を実装する際に参照するガイドブックです。",
            "施設の情報を実装する際に参照するガイドブックです。",
            False,
        ),
        (
            "Introduction\nThis guide explains how to deploy the hub at an intersection.",
            "This guide explains how to deploy the hub at an intersection.",
            False,
        ),
        (
            "1 Purpose\nThe system provides weather data to road operators.",
            "The system provides weather data to road operators.",
            True,
        ),
    ],
)
def test_the_sentence_that_says_so_is_found(tmp_path: Path, text: str, said: str, of_system: bool) -> None:
    purpose = found(tmp_path, text)
    assert purpose is not None
    assert (purpose.document_id, purpose.text, purpose.of_system) == (DOCUMENT, said, of_system)


@pytest.mark.parametrize(
    "text",
    [
        "概要\nまた、実装する費用も減らすことができます。",
        "目的\n※ この欄には目的を記入する。",
        "No. | 項目 | 概要\n1 | 検索 | 顧客を条件で検索して一覧に表示する。\n2 | 登録 | 顧客を一件登録して結果を返す。",
        "エラーが発生した場合は管理者に連絡する。",
        "概要\n構成ファイルの一覧を表1に記載する。",
    ],
)
def test_other_sentences_are_none(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) is None


def test_the_first_pages_are_read(tmp_path: Path) -> None:
    said = "本システムは、顧客を管理するシステムである。"
    assert found(tmp_path / "a", "表紙", said) is not None
    assert found(tmp_path / "b", *["表紙"] * 9, said) is None


def test_what_tells_of_a_system_comes_before_what_tells_of_a_document(tmp_path: Path) -> None:
    text = "はじめに\n本書は、機能を定めた設計書である。\n目的 | 顧客の情報を一か所で管理できるようにする。"
    purpose = found(tmp_path, text)
    assert purpose is not None
    assert purpose.text == "顧客の情報を一か所で管理できるようにする。"
