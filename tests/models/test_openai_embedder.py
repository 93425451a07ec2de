"""The embedder behind OpenAI's route: against a real llama.cpp server, and its faults against a scripted one."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from llama import LlamaServer
from scripted import Reply, ScriptedServer

from rag_assets.contracts.errors import ModelError, SettingsError
from rag_assets.contracts.ports import EmbeddingKind
from rag_assets.models.embedding.embedders import load_embedder
from rag_assets.models.openai.embedder import EmbeddingsRoute, OpenAIEmbedder
from rag_assets.models.openai.endpoint import Endpoint
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings

TEXTS = ["The invoice is due in thirty days.", "", "顧客登録で顧客名が重複したとき\ud800", "tokens " * 3000, "  "]


@pytest.fixture
def make(small_llama_server: LlamaServer) -> Callable[..., OpenAIEmbedder]:
    def embedder(query_prefix: str = "", passage_prefix: str = "", window_tokens: int = 64) -> OpenAIEmbedder:
        endpoint = Endpoint(small_llama_server.openai_url)
        return OpenAIEmbedder("", EmbeddingsRoute(endpoint, query_prefix, passage_prefix, window_tokens))

    return embedder


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


def test_vectors_have_unit_length_and_keep_their_order(make: Callable[..., OpenAIEmbedder]) -> None:
    embedder = make()
    vectors = embedder.embed(TEXTS, EmbeddingKind.PASSAGE)
    assert vectors.shape == (len(TEXTS), embedder.dimension) == (len(TEXTS), 576)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert embedder.embed([text], EmbeddingKind.PASSAGE)[0] @ vector > 0.995
    assert embedder.embed([], EmbeddingKind.QUERY).shape == (0, 576)


def test_many_texts_keep_their_order(make: Callable[..., OpenAIEmbedder]) -> None:
    embedder = make()
    numbers = [f"number {number}" for number in range(40)]
    vectors = embedder.embed(numbers, EmbeddingKind.PASSAGE)
    for place in (31, 32):
        similarity = vectors @ embedder.embed([numbers[place]], EmbeddingKind.PASSAGE)[0]
        assert int(similarity.argmax()) == place


def test_prefixes_are_put_before(make: Callable[..., OpenAIEmbedder]) -> None:
    plain, prefixed = make(), make("query: ", "passage: ")
    for kind in EmbeddingKind:
        expected = plain.embed([f"{kind}: due date"], kind)
        np.testing.assert_allclose(prefixed.embed(["due date"], kind), expected, atol=1e-4)
    assert plain.name != prefixed.name
    assert plain.name.startswith("openai/smollm2-135m-instruct@127.0.0.1:")
    assert (plain.window_tokens, prefixed.window_tokens) == (62, 62 - max(prefixed.count_tokens(["passage: "])))


def test_texts_are_cut_at_the_window(make: Callable[..., OpenAIEmbedder]) -> None:
    embedder = make()
    text = "a long text of many words " * 50
    words = text.split(" ")
    kept = max(n for n in range(80) if embedder.count_tokens([" ".join(words[:n])])[0] <= embedder.window_tokens)
    beginning = embedder.embed([" ".join(words[:kept])], EmbeddingKind.PASSAGE)
    np.testing.assert_allclose(embedder.embed([text], EmbeddingKind.PASSAGE), beginning, atol=0.02)
    uncut = make(window_tokens=192).embed([text], EmbeddingKind.PASSAGE)
    assert float((uncut @ beginning.T)[0, 0]) < 0.995


def test_tokens_are_those_of_the_server(make: Callable[..., OpenAIEmbedder]) -> None:
    embedder = make()
    assert embedder.count_tokens(["", "hello world", "tokens " * 1000]) == [0, 2, 1001]
    assert embedder.count_tokens([]) == []


def test_settings_choose_it(small_llama_server: LlamaServer, tmp_path: Path) -> None:
    chosen = {"provider": "openai", "base_url": small_llama_server.openai_url, "model": small_llama_server.model}
    embedder = Home(load_settings(home=tmp_path, embedding=chosen)).embedder
    assert isinstance(embedder, OpenAIEmbedder)
    assert embedder.window_tokens == 510
    assert embedder.embed(["text"], EmbeddingKind.QUERY).shape == (1, 576)


def test_a_model_must_be_named_at_openai(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="embedding.model"):
        load_embedder("openai", "", 0, tmp_path, EmbeddingsRoute(Endpoint(), "", "", 512))


def rows(*numbered: tuple[int, list[float]]) -> Reply:
    return Reply(json={"object": "list", "model": "m", "data": [{"index": i, "embedding": row} for i, row in numbered]})


def remote(server: ScriptedServer) -> OpenAIEmbedder:
    return OpenAIEmbedder("m", EmbeddingsRoute(Endpoint(f"{server.url}/v1", "sk-secret"), "", "", 512))


def test_rows_are_put_in_order(scripted: ScriptedServer) -> None:
    scripted.replies("/v1/embeddings", rows((1, [0.0, 2.0]), (0, [3.0, 0.0])))
    vectors = remote(scripted).embed(["a", "b"], EmbeddingKind.PASSAGE)
    np.testing.assert_array_equal(vectors, [[1, 0], [0, 1]])


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(scripted: ScriptedServer, status: int) -> None:
    busy = Reply(status, headers={"retry-after-ms": "10"})
    scripted.replies("/v1/embeddings", busy, busy, rows((0, [1.0, 0.0])))
    assert remote(scripted).embed(["a"], EmbeddingKind.QUERY).shape == (1, 2)
    assert len(scripted.received) == 3


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(401, json={"error": {"message": "Incorrect API key: sk-secret"}}), "status 401$"),
        (Reply(400, json={"error": {"message": "cannot read: the secret text of a document"}}), "status 400$"),
        (rows(), "0 vectors for 1 texts"),
        (rows((0, [1.0]), (1, [1.0])), "2 vectors for 1 texts"),
        (rows((0, [0.0, 0.0])), "without length"),
        (Reply(body=b"<html>", headers={"content-type": "text/html"}), "0 vectors for 1 texts"),
        (Reply(body=b"{", headers={"content-type": "application/json"}), "cannot be read"),
    ],
)
def test_faults_are_errors_without_key_and_text(scripted: ScriptedServer, reply: Reply, message: str) -> None:
    scripted.replies("/v1/embeddings", reply)
    with pytest.raises(ModelError, match=message) as raised:
        remote(scripted).embed(["the secret text of a document"], EmbeddingKind.PASSAGE)
    assert "secret" not in str(raised.value)


def test_without_a_tokenizer_tokens_are_estimated(scripted: ScriptedServer) -> None:
    scripted.replies("/v1/models", Reply(json={"object": "list", "data": [{"id": "m", "owned_by": "someone"}]}))
    long = "word " * 5000
    scripted.replies("/v1/embeddings", rows((0, [1.0, 0.0])))
    embedder = remote(scripted)
    embedder.embed([long], EmbeddingKind.PASSAGE)
    (sent,) = (call.json["input"] for call in scripted.received if call.path == "/v1/embeddings")
    assert isinstance(sent, list)
    assert len(sent) == 1
    assert len(sent[0]) < 510 * 5
    assert embedder.count_tokens([sent[0]])[0] <= embedder.window_tokens
