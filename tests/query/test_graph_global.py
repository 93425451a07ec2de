import json
from collections.abc import Callable

import pytest
from graph_data import FILM, PERSON, fill_lake, graph_base, stored_tables
from query_data import BagOfWordsEmbedder, make_base
from scripted_model import ScriptedModel

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.generation import Completion, JsonValue, Outcome, Request
from rag_assets.contracts.tables import CHUNK_INDEX
from rag_assets.models.prompts import load_prompt
from rag_assets.query import Filters, KnowledgeBase
from rag_assets.query.ask.written.graph_global import MAP_STEP, REDUCE_STEP, global_answer, pack_reports
from rag_assets.query.ask.written.reader import AskedQuestion, ReaderOptions
from rag_assets.query.search.report_levels import LevelChoice, ReportedCommunity, ReportText, ReportTree, choose_reports
from rag_assets.store.lake import Lake
from rag_assets.store.vectors.store import VectorStore
from rag_assets.text.tokens import estimate_tokens

Answer = Callable[[Request], "Completion | JsonValue"]
REPORTS = [
    ReportText(f"c{number}", 0, None, f"Report {number} tells of [Data: Entities ({number})].") for number in range(6)
]
SMALL = ReaderOptions(context_tokens=256, answer_tokens=1000, map_reduce_chunks=1, seed=0)
OPTIONS = ReaderOptions(context_tokens=8000, answer_tokens=1000, map_reduce_chunks=1, seed=0)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory, embedder: BagOfWordsEmbedder) -> KnowledgeBase:
    return graph_base(tmp_path_factory.mktemp("graph"), embedder)


def script(helpfulness: dict[str, int]) -> Answer:
    """Partial answers by the reports in the request; the final answer is the fence of what came in."""

    def answer(request: Request) -> Completion | JsonValue:
        text = request.messages[-1].text
        if request.tag.step == REDUCE_STEP:
            return text
        found = [number for number in helpfulness if f"Report {number} " in text]
        value: dict[str, JsonValue] = {
            "answer": f"partial {found[0]} [Data: Entities ({found[0]})]",
            "helpfulness": helpfulness[found[0]],
        }
        return Completion(request, Outcome.COMPLETED, json.dumps(value), value=value)

    return answer


@pytest.mark.parametrize("language", ["ja", "en"])
def test_placeholders(language: str) -> None:
    asked = {"conversation", "searched", "query"}
    assert load_prompt(MAP_STEP, language).placeholders == {"reports", *asked}
    assert load_prompt(REDUCE_STEP, language).placeholders == {"answers", *asked}


def test_partial_answers_are_joined_by_falling_helpfulness() -> None:
    scores = {"0": 10, "1": 0, "2": 90, "3": 40, "4": 0, "5": 60}
    model = ScriptedModel(script(scores), context_tokens=1, reverse=True)
    options = ReaderOptions(context_tokens=256, answer_tokens=50, map_reduce_chunks=1, seed=0)
    found = global_answer(
        AskedQuestion("What is told?", "en"), [each_long(report) for report in REPORTS], model, options
    )
    assert [each.helpfulness for each in found.partial_answers] == [90, 60, 40, 10]
    assert (found.read, found.unhelpful, found.failed, found.left_out) == (6, 2, 0, 0)
    assert found.text is not None
    places = [found.text.index(f"({each.helpfulness}) partial") for each in found.partial_answers]
    assert places == sorted(places)
    assert "[Data: Entities (2)]" in found.text
    assert "partial 1" not in found.text


def each_long(report: ReportText) -> ReportText:
    """A report so long that it fills a group."""
    return ReportText(report.community_id, 0, None, report.text + " word" * 100)


def test_partial_answers_that_do_not_fit_are_left_out() -> None:
    long = "word " * 150

    def answer(request: Request) -> JsonValue | Completion:
        if request.tag.step == REDUCE_STEP:
            return "done"
        value: dict[str, JsonValue] = {"answer": long, "helpfulness": 50}
        return Completion(request, Outcome.COMPLETED, json.dumps(value), value=value)

    found = global_answer(
        AskedQuestion("?", "en"), [each_long(each) for each in REPORTS], ScriptedModel(answer, context_tokens=1), SMALL
    )
    assert found.text == "done"
    assert len(found.partial_answers) == 1
    assert found.left_out == 5


def test_where_nothing_helps_there_is_no_answer() -> None:
    model = ScriptedModel(script(dict.fromkeys("012345", 0)))
    found = global_answer(AskedQuestion("?", "ja"), REPORTS, model, OPTIONS)
    assert (found.text, found.partial_answers, found.unhelpful) == (None, (), 1)
    assert [request.tag.step for request in model.asked] == [MAP_STEP]


def test_groups_that_fail_are_counted() -> None:
    found = global_answer(
        AskedQuestion("?", "en"), REPORTS, ScriptedModel(lambda request: Completion(request, Outcome.FAILED)), SMALL
    )
    assert (found.text, found.failed) == (None, 1)


def test_without_reports_it_is_said_plainly(store: VectorStore, embedder: BagOfWordsEmbedder) -> None:
    with pytest.raises(QueryError, match="there are none"):
        global_answer(AskedQuestion("?", "en"), [], ScriptedModel(lambda _: ""), OPTIONS)
    with pytest.raises(QueryError, match="no reports are indexed"):
        make_base(store, embedder, {CHUNK_INDEX.name: store.optimize(CHUNK_INDEX)}).search("x", "graph_global")


def test_packing_is_a_seeded_partition_within_the_limit() -> None:
    groups = pack_reports(REPORTS, 40, seed=1)
    assert sorted(each.community_id for group in groups for each in group) == [each.community_id for each in REPORTS]
    assert all(sum(estimate_tokens(each.text) + 1 for each in group) <= 40 for group in groups)
    assert len(groups) > 1
    assert pack_reports(REPORTS[::-1], 40, seed=1) == groups
    assert pack_reports(REPORTS, 40, seed=2) != groups
    assert estimate_tokens(pack_reports([each_long(REPORTS[0])], 20, 0)[0][0].text) <= 20


@pytest.mark.parametrize(
    ("level", "scores", "dynamic", "expected"),
    [
        (0, {}, False, ["a", "b"]),
        (1, {}, False, ["a1", "a2", "b"]),
        (2, {}, False, ["a11", "a2", "b"]),
        (2, {"a": 0.5, "a1": 0.4}, True, ["a", "b"]),
        (2, {"a": 0.1, "a1": 0.4, "a11": 0.2}, True, ["a1", "a2", "b"]),
        (2, {"a": 0.1, "a1": 0.4, "a11": 0.6}, True, ["a11", "a2", "b"]),
    ],
)
def test_levels_are_projected_downwards(
    level: int, scores: dict[str, float], dynamic: bool, expected: list[str]
) -> None:
    tree = [("a", 0, None), ("b", 0, None), ("a1", 1, "a"), ("a2", 1, "a"), ("a11", 2, "a1")]
    chosen = choose_reports([ReportedCommunity(*each) for each in tree], LevelChoice(level, dynamic), scores)
    assert sorted(each.community_id for each in chosen) == sorted(expected)


def test_reports_are_read_from_the_stored_tables(tmp_path_factory: pytest.TempPathFactory) -> None:
    lake = Lake(tmp_path_factory.mktemp("lake"))
    fill_lake(lake)
    tree = ReportTree(stored_tables(lake))
    assert tree.get() == [ReportedCommunity("c0", 0, None), ReportedCommunity("c1", 1, "c0")]
    (report,) = tree.reports(tree.get()[:1])
    assert report.text.startswith("# Films and cities")


def test_passages_of_relevant_reports_are_found_without_a_model(graph: KnowledgeBase) -> None:
    result = graph.search("Silent Harbor", "graph_global", 5)
    assert [hit.document_id for hit in result.hits] == [FILM, PERSON]
    assert next(step for step in result.trace.steps if step.operation == "reports").texts[0] == "report c1"
    people = graph.search("Silent Harbor", "graph_global", 5, Filters(folder=("people",)))
    assert [hit.document_id for hit in people.hits] == [PERSON]


def test_a_report_that_is_read_alone_leads_to_passages_however_low_it_ranks(graph: KnowledgeBase) -> None:
    result = graph.search("Films and cities", "graph_global", 5, levels=LevelChoice(1, dynamic=False))
    assert next(step for step in result.trace.steps if step.operation == "reports").texts == ("report c1",)
    assert [hit.document_id for hit in result.hits] == [FILM, PERSON]


@pytest.mark.parametrize(
    ("query", "levels", "expected"),
    [
        ("Silent Harbor", LevelChoice(0, dynamic=False), ["report c0"]),
        ("Silent Harbor", LevelChoice(1, dynamic=False), ["report c1"]),
        ("Silent Harbor", LevelChoice(1, dynamic=True), ["report c1"]),
        ("Films and cities", LevelChoice(1, dynamic=True), ["report c0"]),
    ],
)
def test_the_level_is_chosen(graph: KnowledgeBase, query: str, levels: LevelChoice, expected: list[str]) -> None:
    result = graph.search(query, "graph_global", 5, levels=levels)
    (step,) = (step for step in result.trace.steps if step.operation == "reports")
    assert list(step.texts) == expected


def test_a_question_is_answered_from_the_reports_of_a_level(
    tmp_path_factory: pytest.TempPathFactory, embedder: BagOfWordsEmbedder
) -> None:
    model = ScriptedModel(lambda request: "final" if request.tag.step == REDUCE_STEP else asked(request))

    def asked(request: Request) -> Completion:
        value: dict[str, JsonValue] = {"answer": "partial", "helpfulness": 50}
        assert "Films and cities" in request.messages[-1].text
        assert "# Silent Harbor" not in request.messages[-1].text
        return Completion(request, Outcome.COMPLETED, json.dumps(value), value=value)

    base = graph_base(tmp_path_factory.mktemp("answered"), embedder, model)
    answer = base.ask("What are the films about?", "graph_global", levels=LevelChoice(0, dynamic=False))
    assert answer.text == "final"
    (step,) = (step for step in answer.trace.steps if step.operation == "answer")
    assert step.texts[0] == "reports 1"


def test_a_level_finer_than_all_reports_is_refused_unless_the_settings_name_it(graph: KnowledgeBase) -> None:
    with pytest.raises(QueryError, match="level is 99, expected 0 to 1: there are no finer community reports"):
        graph.search("Films", "graph_global", 5, levels=LevelChoice(99, dynamic=False))
    assert graph.search("Films", "fulltext", 5, levels=LevelChoice(99, dynamic=False))
