"""The examples of the documentation run."""

import runpy
import sys
from pathlib import Path

import pytest

import rag_assets
from rag_assets.contracts.errors import QueryError

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def test_the_sample_is_searched_asked_and_read(
    sample_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["search_and_ask.py", str(sample_home)])
    runpy.run_path(str(EXAMPLES / "search_and_ask.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert (
        "1. sample/設計書/システム機能設計書(Webサービス)_B10103_顧客登録.xlsx › 2. B10103（顧客登録） › C15:AH32"
        in printed
    )
    assert "Returns within 30 days" in printed
    assert "[1] sample/reports/RECEIPT-2024-TXN-98765_retail_purchase.pdf › p.1" in printed
    assert "C15  2.2. 処理結果一覧" in printed


def test_a_knowledge_base_is_opened_in_one_call(
    sample_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_HOME", str(sample_home))
    assert rag_assets.open_knowledge_base().search("顧客", "fulltext", 1).hits
    with pytest.raises(QueryError, match="nothing is indexed in"):
        rag_assets.open_knowledge_base(tmp_path)
