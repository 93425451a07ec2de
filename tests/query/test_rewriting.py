"""Mode `rewrite`: by a model, by rules, with a conversation, falling back."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from query_data import CHUNKS, SPEC, BagOfWordsEmbedder, make_base, table
from scripted_model import ScriptedModel

from rag_assets.contracts.generation import Completion, Outcome
from rag_assets.contracts.tables import CHUNK_INDEX
from rag_assets.models.structured import StructuredModel
from rag_assets.query import KnowledgeBase, Rewrite, SearchResult, Turn
from rag_assets.query.search.rewriting_rules import RuleRewriter, keywords
from rag_assets.store.vectors.store import VectorStore

QUESTION = "重複はどのコードで表されますか"
Build = Callable[..., KnowledgeBase]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    embedder = BagOfWordsEmbedder()
    store = VectorStore(tmp_path_factory.mktemp("base"))
    store.sync(CHUNK_INDEX, {"00": table(CHUNK_INDEX, CHUNKS)}, embedder)
    versions = {CHUNK_INDEX.name: store.optimize(CHUNK_INDEX)}
    return lambda model=None, **given: make_base(store, embedder, versions, model=model, **given)


def written(answer: Any) -> ScriptedModel:
    return ScriptedModel(lambda _: answer)


def rewritten(result: SearchResult) -> tuple[str, ...]:
    (step,) = (step for step in result.trace.steps if step.operation == "rewrite")
    return step.texts


def test_a_model_writes_keywords_for_words_and_sentences_for_meaning(build: Build) -> None:
    model = written({"keywords": "E0004", "sentences": "税の納付"})
    result = build(StructuredModel(model)).search(QUESTION, "rewrite", k=2)
    assert {hit.chunk_id for hit in result.hits} == {f"{SPEC}#1.1", "notes/税.txt#1.0"}
    assert rewritten(result) == ("rewriter: scripted:model", "keywords: E0004", "sentences: 税の納付")
    assert result.query == QUESTION
    (asked,) = model.asked
    assert asked.tag.step == "rewrite_query"
    assert f"{QUESTION}\n</query-" in asked.messages[-1].text


def test_the_model_writes_once_however_deep_the_search_goes(build: Build) -> None:
    model = written({"keywords": "E0004", "sentences": "重複"})
    build(StructuredModel(model)).search(QUESTION, "rewrite", k=50, granularity="document")
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        ({"keywords": " ", "sentences": ""}, "nothing new: the question is searched"),
        ({"keywords": QUESTION + "？", "sentences": QUESTION}, "nothing new: the question is searched"),
        (Completion(None, Outcome.REFUSED), "failed: refused"),  # type: ignore[arg-type]  # the script adds the request
    ],
)
def test_a_rewrite_that_is_empty_copied_or_fails_leaves_the_question(build: Build, answer: Any, note: str) -> None:
    result = build(StructuredModel(written(answer))).search(QUESTION, "rewrite")
    assert rewritten(result)[1:] == (f"keywords: {QUESTION}", f"sentences: {QUESTION}", note)
    assert result.hits == build().search(QUESTION, "hybrid").hits


def test_a_model_that_is_gone_leaves_the_question(build: Build) -> None:
    model = ScriptedModel(str, calls_left=0)
    result = build(StructuredModel(model)).search(QUESTION, "rewrite")
    assert rewritten(result)[-1] == "failed: scripted: no more calls"
    assert result.hits == build().search(QUESTION, "hybrid").hits


def test_the_conversation_reaches_the_model_behind_a_fence(build: Build) -> None:
    model = written({"keywords": "", "sentences": "E0004 の意味"})
    history = [Turn("エラーコード E0004 は何ですか", "重複を表します")]
    result = build(StructuredModel(model)).search("それはどの画面で起きますか", "rewrite", history=history)
    text = model.asked[0].messages[-1].text
    assert "Q: エラーコード E0004 は何ですか\nA: 重複を表します\n</conversation-" in text
    # what the model left empty is the question with what it refers to
    assert rewritten(result)[1] == "keywords: それはどの画面で起きますか エラーコード E0004"


def test_without_a_model_rules_resolve_the_conversation(build: Build) -> None:
    history = [Turn("clientName は何ですか"), Turn("エラーコード E0004 は何ですか", "重複")]
    result = build().search("それを教えてください", "rewrite", k=1, history=history)
    assert result.hits[0].chunk_id == f"{SPEC}#1.1"
    assert rewritten(result)[:2] == ("rewriter: rules", "keywords: それ エラーコード E0004")
    alone = build().search("税の納付を教えてください", "rewrite", k=1, history=history)
    assert rewritten(alone)[1:] == ("keywords: 税の納付", "sentences: 税の納付を教えてください")


def test_questions_that_refer_to_each_other_are_followed_back() -> None:
    history = [Turn("無関係"), Turn("有給休暇の申請方法を教えてください"), Turn("それは誰が承認しますか")]
    rewrite = RuleRewriter().rewrite("その期限は？", history)
    assert rewrite.sentences == "その期限は？ それは 承認 有給休暇の申請方法"
    assert rewrite.keywords.endswith(" 有給休暇の申請方法")


@pytest.mark.parametrize("retriever", ["vector", "fulltext"])
def test_any_mode_may_follow_and_any_rewriter_go_before(build: Build, retriever: str) -> None:
    class Trained:
        name = "trained"

        def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
            assert (question, history) == (QUESTION, ())
            return Rewrite("E0004", "エラーコード 重複")

    result = build(rewriter=Trained()).search(QUESTION, f"rewrite+{retriever}", k=1)
    assert result.hits[0].chunk_id == f"{SPEC}#1.1"
    assert rewritten(result)[0] == "rewriter: trained"
    operations = [step.operation for step in result.trace.steps]
    assert ("nearest" in operations, "matching" in operations) == (retriever == "vector", retriever == "fulltext")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("有給休暇の申請方法を教えてください。", "有給休暇の申請方法"),
        ("v1.2.3 の変更点について詳しく説明していただけますか", "v1.2.3 の変更点"),
        ("エラーコード E0004 は何ですか？", "エラーコード E0004"),
        ("clientName とは何でしょうか", "clientName"),
        ("「何ですか」というボタンはどこにありますか", "「何ですか」というボタン"),
        ("どのように顧客を登録しますか", "顧客を登録"),
        ("受注番号A-123の担当者は誰ですか。締め切りも知りたいのですが", "受注番号A-123の担当者 締め切り"),
        ("ぶどうなどの項目", "ぶどうなどの項目"),
        ("What is the expiry time of the access_token?", "expiry time access_token"),
        ("Could you please tell me who approves the budget?", "approves budget"),
        ('Where is "what is it" of the WHO?', '"what is it" WHO'),
        ("教えてください", "教えてください"),
        ("what is it", "what is it"),
        ("税", "税"),
        ("を教えて" * 1000, "を教えて" * 1000),
    ],
)
def test_rules_keep_what_is_asked_for(question: str, expected: str) -> None:
    assert keywords(question) == expected
