"""What scores answers: the exported cross-encoder, with the adapter that comes with the package."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.ports import PlacedStatement
from rag_assets.models.embedding import answer_scorer, embedders
from rag_assets.models.embedding.answer_scorer import E5AnswerScorer
from rag_assets.models.embedding.e5_export import export_model
from rag_assets.models.embedding.e5_weights import (
    Adapter,
    Precision,
    installed_path,
    read_adapter,
    read_weights,
    write_adapter,
)
from rag_assets.models.embedding.embedders import E5Embedder, ExportedFiles

QUESTIONS = {
    "受付は何時に終わりますか": "窓口の受付は午後4時30分に終わる。",
    "パスワードは何文字以上ですか": "パスワードは英数字を混ぜた10文字以上とする。",
    "E0012はどんなときのエラーですか": "コード: E0012 | 内容: 接続が切れた | 対処: つなぎ直す",
    "Who approves travel expenses?": "Travel expenses are approved by the head of the department.",
    "届出の期限は？": "届出は、事実が生じた日から14日以内に行う。",
    "How long are the logs kept?": "ログは90日間保存する。",
}


@pytest.fixture(scope="module")
def scorer(models_folder: Path) -> E5AnswerScorer:
    return E5AnswerScorer(E5Embedder(models_folder, threads=2), models_folder)


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_answers_stands_above_the_rest(question: str, scorer: E5AnswerScorer) -> None:
    statements = [*QUESTIONS.values(), "本書は、運用の手順を定める。", "目次", "The office is on the second floor."]
    scores = scorer.score(question, [PlacedStatement(each) for each in statements])
    assert scores.dtype == np.float32
    assert scores.shape == (len(statements),)
    best, second, *_ = np.argsort(-scores)
    assert statements[best] == QUESTIONS[question]
    assert scores[best] > scores[second] + 1
    assert scores[second] < 0


def test_a_score_depends_on_nothing_else(scorer: E5AnswerScorer) -> None:
    question, *_ = QUESTIONS
    statements = [PlacedStatement(each, "a", "b") for each in QUESTIONS.values()]
    together = scorer.score(question, statements)
    alone = [scorer.score(question, [each])[0] for each in statements]
    np.testing.assert_array_equal(together, alone)
    assert scorer.score(question, []).shape == (0,)


def test_where_a_statement_stands_counts(scorer: E5AnswerScorer) -> None:
    places = ("退職金規程", "旅費規程")
    scores = scorer.score("旅費規程の宿泊費の上限は？", [PlacedStatement("上限: 12,000円", each) for each in places])
    assert scores[1] > scores[0]


def test_float32_scores_are_near(tmp_path: Path, models_folder: Path, scorer: E5AnswerScorer) -> None:
    exact = E5AnswerScorer(E5Embedder(models_folder), tmp_path, Precision.FLOAT32)
    statements = [PlacedStatement(each) for each in QUESTIONS.values()]
    pairs = [(exact.score(question, statements), scorer.score(question, statements)) for question in QUESTIONS]
    ours, theirs = np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])
    assert np.corrcoef(ours, theirs)[0, 1] > 0.98


@given(st.text(st.characters(), max_size=200), st.text(st.characters(), max_size=200))
@settings(max_examples=25, deadline=None)
def test_any_text_has_a_score(scorer: E5AnswerScorer, question: str, text: str) -> None:
    long = PlacedStatement(text * 20, text * 20, text * 20)
    assert np.isfinite(scorer.score(question, [PlacedStatement(text), long])).all()


def test_an_adapter_is_read_as_it_was_written(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    up, down = (generator.standard_normal(shape).astype(np.float32) for shape in ((6, 2), (2, 5)))
    head = generator.standard_normal(6).astype(np.float32), np.ones(1, np.float32)
    adapter = Adapter({"l0.q": (up, down)}, head)
    path = tmp_path / "adapter.npz"
    write_adapter(path, adapter)
    read = read_adapter(path)
    change = read.change("l0.q")
    assert change is not None
    assert np.abs(change - up @ down).max() < 0.1
    assert read.head is not None
    for stored, written in zip(read.head, head, strict=True):
        np.testing.assert_array_equal(stored, written)
    assert read.change("l0.k") is None
    write_adapter(path, Adapter({}))
    assert read_adapter(path) == Adapter({})


def test_an_adapter_of_another_model_is_named(tmp_path: Path) -> None:
    weights, head = read_weights(installed_path()), (np.zeros(384, np.float32), np.zeros(1, np.float32))
    for name, rows in (("l0.none", 384), ("l0.q", 7)):
        product = (np.zeros((rows, 2), np.float32), np.zeros((2, 384), np.float32))
        adapter = Adapter({name: product}, head)
        with pytest.raises(ModelError, match=name):
            export_model(weights, tmp_path / "model.onnx", Precision.INT8, adapter)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no adapter", b"\x93NUMPY\x01\x00"])
def test_a_damaged_adapter_is_named(
    content: bytes, tmp_path: Path, models_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "answers.npz"
    path.write_bytes(content)
    monkeypatch.setattr(embedders, "_ANSWERS", path)
    broken = E5AnswerScorer(E5Embedder(models_folder), tmp_path / "models")
    with pytest.raises(ModelError, match=r"answers\.npz: not a readable adapter"):
        broken.score("q", [PlacedStatement("a")])


def test_a_model_that_cannot_be_written_is_tried_once_and_not_for_a_search(
    tmp_path: Path, models_folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    E5Embedder(models_folder).count_tokens(["one"])
    for path in models_folder.iterdir():
        if "answers" not in path.name:
            (tmp_path / path.name).symlink_to(path)
    tried: list[Path] = []

    def fail(folder: Path, _: Precision) -> ExportedFiles:
        tried.append(folder)
        raise ModelError("the model cannot be exported: No space left on device")

    monkeypatch.setattr(answer_scorer, "ensure_answer_files", fail)
    monkeypatch.setattr(embedders, "ensure_answer_files", fail)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 20))
    embedder = E5Embedder(tmp_path)
    assert embedder.count_tokens(["one"]) == [1]
    assert (tried, caplog.text) == ([], "")
    scorer = E5AnswerScorer(embedder, tmp_path)
    for _ in range(2):
        with pytest.raises(ModelError, match="No space left"):
            scorer.score("q", [PlacedStatement("a")])
    assert tried == [tmp_path]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 40))
    E5Embedder(tmp_path).count_tokens(["one"])
    assert tried == [tmp_path] * 2


@pytest.mark.parametrize("content", [None, b"no adapter"])
def test_the_embedder_works_where_the_adapter_is_missing_or_damaged(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "answers.npz"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(embedders, "_ANSWERS", path)
    embedder = E5Embedder(tmp_path / "models")
    assert embedder.count_tokens(["one"]) == [1]
    assert "answers will be chosen by words alone" in caplog.text
    with pytest.raises(ModelError, match=r"answers\.npz: not a readable adapter"):
        E5AnswerScorer(embedder, tmp_path / "models").score("q", [PlacedStatement("a")])
