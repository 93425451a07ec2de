"""Evidence is found where the sample holds it, as people name it."""

import pytest

from rag_assets.evaluation.evidence import Corpus, Level, Target
from rag_assets.evaluation.questions import Evidence, Question

RECEIPT = "sample/reports/RECEIPT-2024-TXN-98765_retail_purchase.pdf"
BOOK = "sample/設計書/システム機能設計書(Webサービス)_B10103_顧客登録.xlsx"
SHEET = "2. B10103（顧客登録）"


def target(corpus: Corpus, *evidence: Evidence, type_: str = "") -> Target:
    return corpus.targets([Question("q", "?", type=type_, evidence=evidence)])["q"]


@pytest.mark.parametrize(
    "named",
    [
        RECEIPT,
        RECEIPT.removeprefix("sample/"),
        "RECEIPT-2024-TXN-98765_retail_purchase.pdf",
        f"docs/{RECEIPT}",
        f"elsewhere/{RECEIPT.removeprefix('sample/')}",
        "RECEIPT-2024-TXN-98765_retail_purchase",
    ],
)
def test_documents_are_found_by_the_ends_of_their_paths(corpus: Corpus, named: str) -> None:
    found = target(corpus, Evidence(named))
    assert all(found.ids(level) == {RECEIPT} for level in Level)
    assert found.facts is not None
    assert (found.facts.format, found.facts.length_chars > 500) == ("pdf", True)


def test_a_moved_document_is_told_by_its_quote_alone(corpus: Corpus) -> None:
    moved = f"archive/2024/{RECEIPT.rpartition('/')[2]}"
    assert target(corpus, Evidence(moved, quote="Returns within 30 days")).ids(Level.DOCUMENT) == {RECEIPT}
    for evidence in (Evidence(moved), Evidence(moved, quote="Returns within 90 days")):
        found = target(corpus, evidence)
        assert found.missing[Level.DOCUMENT] == (evidence,)
        assert found.ids(Level.DOCUMENT) == frozenset()


@pytest.mark.parametrize("place", ["page 1", "Page 1", "p.1", "1ページ", "RETURN POLICY", ""])
def test_pages_are_found_by_number_or_by_the_quote(corpus: Corpus, place: str) -> None:
    found = target(corpus, Evidence(RECEIPT, place, "returns  within 30 days".replace("r", "R", 1)))
    assert found.ids(Level.PAGE) == {f"{RECEIPT}#1"}
    assert all(key.startswith(f"{RECEIPT}#1.") for key in found.ids(Level.PASSAGE))
    assert not any(found.missing.values())


def test_cells_tell_passages_apart_that_hold_the_same_words(corpus: Corpus) -> None:
    everywhere = target(corpus, Evidence(BOOK, SHEET, "顧客名")).ids(Level.PASSAGE)
    at_cells = target(corpus, Evidence(BOOK, SHEET, "顧客名", "C15:AH32")).ids(Level.PASSAGE)
    assert at_cells < everywhere


def test_a_quote_over_several_cells_is_found(corpus: Corpus) -> None:
    found = target(corpus, Evidence(BOOK, SHEET, "２００ (OK) 正常に処理が終了した場合。"))
    assert len(found.ids(Level.PASSAGE)) == 1


def test_what_is_gone_counts_as_not_found(corpus: Corpus) -> None:
    there, gone = Evidence(RECEIPT, quote="Returns within 30 days"), Evidence(RECEIPT, quote="Returns within 90 days")
    found = target(corpus, there, gone)
    assert (found.missing[Level.DOCUMENT], found.missing[Level.PASSAGE]) == ((), (gone,))
    assert sorted(len(piece.ids) > 0 for piece in found.ways[Level.PASSAGE][0]) == [False, True]
    absent = target(corpus, Evidence("absent.pdf", "page 1", "x"))
    assert absent.facts is None
    assert all(absent.missing[level] for level in Level)


def test_each_alternative_is_a_full_answer(corpus: Corpus) -> None:
    one, other = Evidence(RECEIPT, quote="RETURN POLICY"), Evidence(BOOK, quote="顧客名", alternative=True)
    ways = target(corpus, one, other).ways[Level.DOCUMENT]
    assert [[piece.ids for piece in way] for way in ways] == [[{RECEIPT}], [{BOOK}]]


def test_quotes_of_a_list_from_one_place_are_one_piece(corpus: Corpus) -> None:
    quotes = Evidence(RECEIPT, "page 1", "RETURN POLICY"), Evidence(RECEIPT, "page 1", "Receipt required")
    assert len(target(corpus, *quotes, type_="list").ways[Level.PASSAGE][0]) == 1
    assert len(target(corpus, *quotes).ways[Level.DOCUMENT][0]) == 1
