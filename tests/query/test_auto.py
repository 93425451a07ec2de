"""Mode `auto`: which mode each kind of question is searched by, why, and what is done where a mode is not there."""

from collections.abc import Callable
from typing import Any

import pytest
from graph_data import FILM, QUESTION, TWO_STEPS, graph_base
from query_data import BagOfWordsEmbedder, make_base
from query_fixtures import build, build_graph
from scripted_model import ScriptedModel

from rag_assets.contracts.tables import CHUNK_INDEX, QUESTION_INDEX, SUMMARY_INDEX
from rag_assets.models.structured import StructuredModel
from rag_assets.query import KnowledgeBase, Step, Trace, Turn

WHOLE = "資料全体の主な傾向をまとめてください"
Made = Callable[..., KnowledgeBase]


def choice(trace: Trace) -> Step:
    (step,) = (step for step in trace.steps if step.operation == "choose" and step.texts[0].startswith("rule: "))
    return step


def fused_signals(trace: Trace) -> tuple[str, ...]:
    return next(step.texts for step in trace.steps if step.operation == "fuse" and "words" in step.texts)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, embedder: BagOfWordsEmbedder) -> Made:
    """Makes knowledge bases on one index: everything, or the passages alone."""
    store = build(tmp_path_factory.mktemp("auto"), embedder)
    versions = {each.name: store.optimize(each) for each in (CHUNK_INDEX, SUMMARY_INDEX, QUESTION_INDEX)}
    stored, graph = build_graph(tmp_path_factory.mktemp("lake"), store, embedder)

    def make(*, plain: bool = False, model: ScriptedModel | None = None, **options: Any) -> KnowledgeBase:
        if plain:
            return make_base(store, embedder, {CHUNK_INDEX.name: versions[CHUNK_INDEX.name]})
        structured = StructuredModel(model) if model is not None else None
        return make_base(store, embedder, versions | graph, stored=stored, model=structured, **options)

    return make


@pytest.mark.parametrize(
    ("query", "rule", "mode"),
    [
        (WHOLE, "the whole", "graph_global"),
        ("すべての設計書の一覧と概要", "the whole", "graph_global"),
        ("報告書の全体傾向", "the whole", "graph_global"),
        ("全体的な特徴を知りたい", "the whole", "graph_global"),
        ("What are the main themes?", "the whole", "graph_global"),
        ("Summarise the topics across all documents", "the whole", "graph_global"),
        ("顧客登録と顧客名の扱い", "any other", "weighted"),
        ("申請と承認の両方に必要な書類は", "any other", "weighted"),
        ("Who wrote both the memo and the letter?", "any other", "weighted"),
        ("Who signed the annual plan of the company that moved?", "any other", "weighted"),
        ("E0004", "any other", "weighted"),
        ("Ｅ０００４とは何ですか？", "any other", "weighted"),
        ("「顧客名は必須です」", "any other", "weighted"),
        ("エラーコード E0004 の原因は何ですか", "any other", "weighted"),
        ("Which columns does T_CUSTOMER have?", "any other", "weighted"),
        ("承認の手順はどの文書にありますか", "any other", "weighted"),
        ("Where is the approval described?", "any other", "weighted"),
        ("承認の手順を教えてください", "any other", "weighted"),
        ("Who won in 1990 and the 20th time?", "any other", "weighted"),
        ("全体会議の議事録の要約", "any other", "weighted"),
        ("システム全体の構成を教えてください", "any other", "weighted"),
        ("🍣", "any other", "weighted"),
    ],
)
def test_the_question_decides(made: Made, query: str, rule: str, mode: str) -> None:
    result = made().search(query, "auto", 3)
    assert (result.mode, choice(result.trace).texts[:2]) == (mode, (f"rule: {rule}", f"mode: {mode}"))
    assert result.hits == made().search(query, mode, 3).hits


def test_what_is_not_there_gives_way_and_is_named(made: Made) -> None:
    result = made(plain=True).search(WHOLE, "auto", 3)
    assert result.mode == "weighted"
    assert choice(result.trace).texts[0] == "rule: any other"
    left_out = "the whole: graph_global is left out: there are no community reports"
    assert choice(result.trace).texts[2].startswith(left_out)


def test_the_graph_counts_where_the_query_leads_on_from_what_few_passages_name(
    tmp_path_factory: pytest.TempPathFactory, embedder: BagOfWordsEmbedder
) -> None:
    base = graph_base(tmp_path_factory.mktemp("graph"), embedder, texts=TWO_STEPS)
    result = base.search(QUESTION, "auto")
    assert result.mode == "weighted"
    places = [hit.document_id for hit in result.hits]
    alone = [hit.document_id for hit in base.search(QUESTION, "hybrid").hits]
    assert places.index(FILM) < alone.index(FILM)
    assert "graph" in fused_signals(result.trace)
    searched = [step.operation for step in result.trace.steps if step.index == "chunks"]
    assert (searched.count("nearest"), searched.count("matching")) == (1, 1), "walks start from what is found anyway"
    assert "lookup" not in searched, "all that the walk leads to was found"
    assert "graph" not in fused_signals(base.search("When was Silent Harbor made?", "auto").trace)


@pytest.mark.parametrize(
    ("query", "rule", "mode"),
    [
        ("それはどの画面で起きますか", "follow-up, any other", "rewrite+weighted"),
        ("原因は？", "follow-up, any other", "rewrite+weighted"),
        ("Why?", "follow-up, any other", "rewrite+weighted"),
        ("それを資料全体の傾向としてまとめると", "follow-up, the whole", "rewrite+graph_global"),
        ("税の納付の手順を教えてください", "any other", "weighted"),
    ],
)
def test_a_follow_up_is_rewritten_first(made: Made, query: str, rule: str, mode: str) -> None:
    result = made().search(query, "auto", 1, history=[Turn("エラーコード E0004 は何ですか", "重複")])
    assert (result.mode, choice(result.trace).texts[0]) == (mode, f"rule: {rule}")
    if mode == "rewrite+weighted":
        assert result.hits[0].chunk_id == "specs/token.xlsx#1.1"


def test_questions_are_asked_in_auto_and_the_answer_says_how(made: Made) -> None:
    answer = made().ask("それはどの画面で起きますか", k=1, history=[Turn("エラーコード E0004 は何ですか", "重複")])
    assert answer.mode == "rewrite+weighted"
    (rewrite,) = (step for step in answer.trace.steps if step.operation == "rewrite")
    assert rewrite.texts[2].count("E0004") == 1
    assert answer.sources[0].chunk_id == "specs/token.xlsx#1.1"


@pytest.mark.parametrize("model", [None, ScriptedModel(lambda _: "")])
def test_the_whole_is_answered_from_reports_only_by_a_model(made: Made, model: ScriptedModel | None) -> None:
    answer = made(model=model).ask(WHOLE)
    reports = model is not None
    assert answer.mode == ("graph_global" if reports else "weighted")
    if not reports:
        assert "answers from community reports need a language model" in choice(answer.trace).texts[2]
    assert made().search(WHOLE, "auto").mode == "graph_global"
