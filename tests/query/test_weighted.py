"""Mode `weighted`: what each of its signals does to the order, over LanceDB."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from query_data import BagOfWordsEmbedder, chunk, make_base, summary, table

from rag_assets.contracts.tables import CHUNK_INDEX, EMBEDDED_TEXT, SUMMARY_INDEX
from rag_assets.query import Filters, KnowledgeBase
from rag_assets.query.search.grouping import Granularity
from rag_assets.query.search.ranking_weights import SHIPPED, Ranking, Weights
from rag_assets.store.vectors.store import VectorStore
from rag_assets.text.folding import TermKind, kind_of

NAME = "住登外者宛名番号付番API"
API = f"specs/{NAME}.xlsx"


def of_api(page: int, text: str) -> dict[str, Any]:
    """A passage under its document's name, as it is indexed."""
    return chunk(API, page, 0, text, **{EMBEDDED_TEXT: f"{NAME}\n{text}"})


ROWS = [
    of_api(1, f"{NAME}の概要。{NAME}は番号を付ける。"),
    of_api(2, "エラー番号の一覧 E0004 宛名番号が重複する"),
    of_api(3, f"{NAME}のエラーは何かを{NAME}の利用者に知らせる"),
    chunk("specs/支払.xlsx", 1, 0, "支払の期限は月末とする"),
    chunk("specs/支払.xlsx", 2, 0, "期限を過ぎた支払の扱い。支払の督促。"),
    chunk("notes/memo.md", 1, 0, "支払の期限は月末"),
    chunk("notes/memo.md", 2, 0, "会議の記録"),
]


def made(
    folder: Path,
    embedder: BagOfWordsEmbedder,
    rows: Sequence[Mapping[str, Any]] = ROWS,
    summaries: Sequence[Mapping[str, Any]] = (),
) -> KnowledgeBase:
    store = VectorStore(folder)
    store.sync(SUMMARY_INDEX, {"00": table(SUMMARY_INDEX, summaries)}, embedder)
    others = [chunk(f"others/{number:02}.md", 1, 0, f"議事録 {number}") for number in range(20)]  # what is rare is rare
    store.sync(CHUNK_INDEX, {"00": table(CHUNK_INDEX, [*rows, *others])}, embedder)
    return make_base(store, embedder, {each.name: store.optimize(each) for each in (CHUNK_INDEX, SUMMARY_INDEX)})


@pytest.mark.parametrize(
    "query",
    [
        "E0004",
        "住登外者宛名番号付番APIのE0004のエラーは何か",
        "住登外者宛名番号付番APIについて、Ｅ０００４を教えてください",
    ],
)
def test_a_code_is_found_also_where_the_document_is_named(
    tmp_path: Path, embedder: BagOfWordsEmbedder, query: str
) -> None:
    assert made(tmp_path, embedder).search(query, "weighted", 3).hits[0].chunk_id == f"{API}#2.0"


def test_of_two_pages_that_say_the_same_the_one_that_says_more_of_it_comes_first(
    tmp_path: Path, embedder: BagOfWordsEmbedder
) -> None:
    rows = [
        chunk("a/plain.md", 1, 0, "受付の期限は月末とする"),
        chunk("b/full.md", 1, 0, "受付の期限は月末とする"),
        chunk("b/full.md", 1, 1, "期限を過ぎた受付の扱い"),
    ]
    found = made(tmp_path, embedder, rows).search("受付の期限", "weighted", 3, granularity="page")
    assert found.hits[0].document_id == "b/full.md"
    assert found.hits[0].score > found.hits[1].score


def test_what_tells_the_first_passages_apart_weighs_more_than_the_name_that_all_repeat(
    tmp_path: Path, embedder: BagOfWordsEmbedder
) -> None:
    rows = [
        chunk("specs/起動管理.md", page, 0, f"起動管理システムの起動管理システム。{page}章") for page in range(1, 9)
    ]
    rows.append(chunk("specs/起動管理.md", 9, 0, "利用者の要求には三秒以内に応答する"))
    found = made(tmp_path, embedder, rows).search("起動管理システムは要求に何秒以内に応答しますか", "weighted", 9)
    assert found.hits[0].page_number == 9
    (fused,) = (step for step in found.trace.steps if step.operation == "fuse")
    own = dict(zip(fused.texts, fused.scores[0].lists, strict=True))
    assert own["coverage"] == 1


def test_only_the_first_passages_are_read_for_their_words(tmp_path: Path, embedder: BagOfWordsEmbedder) -> None:
    found = made(tmp_path, embedder).search("支払の期限", "weighted", 20)
    (fused,) = (step for step in found.trace.steps if step.operation == "fuse")
    place = fused.texts.index("coverage")
    assert [each.lists[place] is not None for each in fused.scores] == [True] * 15 + [False] * (len(fused.scores) - 15)


def test_weights_of_zero_leave_no_passage_without_a_score(tmp_path: Path, embedder: BagOfWordsEmbedder) -> None:
    base = made(tmp_path, embedder)
    learned = {**SHIPPED, Granularity.CHUNK: Weights(meaning=0.0, coverage=1.0)}
    found = base.variant(replace(base.options, ranking=Ranking(learned))).search("支払の期限", "weighted", 3)
    assert "支払" in found.hits[0].text


def test_names_and_summaries_weigh_where_documents_are_looked_for(tmp_path: Path, embedder: BagOfWordsEmbedder) -> None:
    base = made(tmp_path, embedder)
    assert base.search("支払の期限", "weighted", 1).hits[0].document_id == "notes/memo.md"
    assert base.search("支払の期限", "weighted", 1, granularity="document").hits[0].document_id == "specs/支払.xlsx"
    about = [
        summary("page_summary", "notes/memo.md", 2, "来年の採用計画の会議"),
        summary("page_summary", "specs/支払.xlsx", 1, "支払"),
    ]
    summarized = made(tmp_path / "summaries", embedder, summaries=about)
    found = summarized.search("採用計画の会議", "weighted", 1, granularity="document")
    assert found.hits[0].document_id == "notes/memo.md"
    (fused,) = (step for step in found.trace.steps if step.operation == "fuse")
    assert len(fused.scores[0].lists) == 4  # words, meaning, names, summaries


def test_filters_hold_for_every_signal(tmp_path: Path, embedder: BagOfWordsEmbedder) -> None:
    found = made(tmp_path, embedder).search("支払の期限", "weighted", 9, Filters(folder=("notes",)))
    assert {hit.document_id for hit in found.hits} == {"notes/memo.md"}


@pytest.mark.parametrize(
    ("term", "kind"),
    [
        ("e0004", TermKind.IDENTIFIER),
        ("client_name", TermKind.IDENTIFIER),
        ("2024", TermKind.IDENTIFIER),
        ("b1", TermKind.WORD),
        ("12", TermKind.WORD),
        ("renewal", TermKind.WORD),
        ("顧客", TermKind.PAIR),
        ("エラ", TermKind.PAIR),
        ("税", TermKind.CHARACTER),
    ],
)
def test_kinds_of_terms(term: str, kind: TermKind) -> None:
    assert kind_of(term) is kind
