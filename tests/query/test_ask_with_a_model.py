"""Answers by real models behind a real llama.cpp server."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from llama import LlamaServer
from query_data import OPTIONS, BagOfWordsEmbedder, make_base
from query_fixtures import build

from rag_assets.cli import main
from rag_assets.contracts.tables import CHUNK_INDEX, QUESTION_INDEX, SUMMARY_INDEX
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.language_models import language_model
from rag_assets.pipeline.opening import knowledge_base
from rag_assets.pipeline.settings import load_settings
from rag_assets.query import MODES, Answer, Answered, EvidenceFound, TextPiece
from rag_assets.query.ask.quotes import stands_in

SAMPLE = Path(__file__).parents[2] / "docs" / "sample" / "設計書"


def check(answer: Answer) -> None:
    """Every citation leads to a place, says truly whether its words stand there, and the trace names every call."""
    by_number = {source.number: source for source in answer.sources}
    for sentence in answer.sentences:
        for citation in sentence.citations:
            source = by_number[citation.number]
            assert citation.supported <= stands_in(citation.quote, source.whole_text)
            assert source.citation.link.startswith("/pages/")
            assert source.chunk_id
    assert answer.text
    assert answer.trace.steps
    assert all(step.milliseconds >= 0 for step in answer.trace.steps)
    for call in answer.trace.calls:
        assert call.provider == "openai"
        assert call.cached or call.input_tokens + call.cached_tokens > 0


@pytest.mark.parametrize("mode", ["hybrid", "meta_knowledge"])
def test_an_answer_is_written_live(
    small_llama_server: LlamaServer, tmp_path: Path, embedder: BagOfWordsEmbedder, mode: str
) -> None:
    """Whatever so small a model writes, it is checked; some ten seconds each."""
    store = build(tmp_path / "vectors", embedder)
    versions = {each.name: store.optimize(each) for each in (CHUNK_INDEX, SUMMARY_INDEX, QUESTION_INDEX)}
    chosen = {"provider": "openai", "model": "small", "base_url": small_llama_server.openai_url, "temperature": 0}
    home = Home(load_settings(home=tmp_path / "home", language_model=chosen))
    options = replace(OPTIONS.reader, context_tokens=500, answer_tokens=120)
    base = make_base(store, embedder, versions, model=language_model(home), reader=options)
    events = list(base.ask_stream("What does the annual plan mention?", mode, 2))
    assert isinstance(events[0], EvidenceFound)
    assert isinstance(events[-1], Answered)
    answer = events[-1].answer
    check(answer)
    step = "answer_from_questions" if mode == "meta_knowledge" else "answer_from_passages"
    assert [call.step for call in answer.trace.calls] == [step]
    if answer.failure is None and answer.answered:
        assert "".join(event.text for event in events if isinstance(event, TextPiece)).startswith(answer.text[:10])
    again = base.ask("What does the annual plan mention?", mode, 2)
    assert [call.cached for call in again.trace.calls] == [True]
    assert again.text == answer.text
    rows = home.ledger().rows(columns=["step", "cache_hit"]).to_pylist()
    assert {row["step"] for row in rows} == {step}
    assert any(row["cache_hit"] for row in rows)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> Path:
    """Home of a knowledge base on the specifications of the sample, with its entity graph."""
    folder = tmp_path_factory.mktemp("asked")
    (folder / "models").mkdir()
    for path in models_folder.iterdir():
        (folder / "models" / path.name).symlink_to(path)
    arguments = ["--home", str(folder), "index", f"sample={SAMPLE}"]
    result = CliRunner().invoke(main, arguments, env={"RAG_GRAPH__ENABLED": "true"})
    assert result.exit_code == 0, result.output
    return folder


@pytest.mark.slow
def test_every_mode_answers_on_the_sample(sample: Path, llama_server: LlamaServer) -> None:
    model = {"provider": "openai", "model": llama_server.model, "base_url": llama_server.openai_url, "temperature": 0}
    search = {
        "answer_context_tokens": 800,
        "answer_tokens": 300,
        "map_reduce_chunks": 4,
        "global_level": 0,
        "global_context_tokens": 2000,
        "global_answer_tokens": 400,
    }
    settings = {"language_model": {**model, "timeout_seconds": 600}, "graph": {"enabled": True}, "search": search}
    base = knowledge_base(Home(load_settings(home=sample, **settings)))
    written, supported = 0, 0
    for mode in MODES:  # some minutes
        answer = base.ask("顧客登録で顧客名が重複したときのHTTPステータスコードは？", mode, 3)
        check(answer)
        assert answer.trace.calls, mode
        written += answer.model is not None
        supported += any(sentence.supported for sentence in answer.sentences)
    assert written >= len(MODES) - 2
    assert supported
