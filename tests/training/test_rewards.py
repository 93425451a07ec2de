"""What a rewrite gains on a published version, and what a trained rewriter falls back to."""

import importlib.util
import itertools
import logging
from collections import Counter
from pathlib import Path
from typing import cast

import pytest

from rag_assets.contracts.errors import ModelError, QueryError
from rag_assets.evaluation.evidence import Level
from rag_assets.evaluation.questions import Evidence, Question
from rag_assets.models.text_to_text import training_library
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.measuring import open_corpus
from rag_assets.pipeline.opening import knowledge_base, published_snapshot
from rag_assets.pipeline.settings import load_settings
from rag_assets.query.search.rewriting_rules import RuleRewriter
from rag_assets.query.search.trained_rewriting import QueryForm, TrainedModel, TrainedRewriter
from rag_assets.training.rewards import SearchReward, answer_f1, pseudo_labels, split
from rag_assets.training.rewriter import Item

without_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")


def test_f1_is_that_of_squad() -> None:
    """Worked by hand: 2 of 3 tokens shared, then 2 of 4; and signs of Japanese."""
    question = Question("q", "?", answer_contains=(("the Tower of London", "London"),))
    assert answer_f1("A London tower", question) == pytest.approx(2 * 2 / (2 + 3))
    assert answer_f1("Paris", question) == 0
    japanese = Question("q", "?", answer_contains=(("三十分",), ("顧客ID",)))
    assert answer_f1("三十分です。", japanese) == pytest.approx((2 * 3 / (5 + 3) + 0) / 2)


def test_a_rewrite_gains_what_its_search_finds_more(sample_home: Path) -> None:
    home = Home(load_settings(home=sample_home))
    snapshot = published_snapshot(home)
    base, corpus = knowledge_base(home, snapshot), open_corpus(home, snapshot)
    document = next(each for each in base.search("pesticide imports", "fulltext", 1).hits).document_id
    question = Question("q1", "zzzz qqqq", evidence=(Evidence(document),))
    talk = Question("q2", "And then?", evidence=(Evidence(document),), history=("What is imported?",))
    reward = SearchReward(base, corpus, [question, talk], "MRR@10", Level.DOCUMENT)
    assert reward.rewards(question)
    assert not reward.rewards(talk)
    item = Item(question.text, QueryForm.KEYWORDS)
    assert reward.gain(item, "pesticide imports") == pytest.approx(1 - reward.worth(item, ""))
    assert reward.gain(item, "") == reward.gain(item, "Zzzz, qqqq?") == 0
    labels = pseudo_labels([item, Item(question.text, QueryForm.SENTENCES)], RuleRewriter(), reward)
    assert QueryForm.KEYWORDS not in {labelled.form for labelled, _ in labels}
    with pytest.raises(QueryError, match="document MRR@10 judges 1 questions, 10 are needed"):
        split([question], {"q1"}, reward, [QueryForm.KEYWORDS], RuleRewriter())


def test_pages_of_a_document_named_alone_are_not_judged(sample_home: Path) -> None:
    home = Home(load_settings(home=sample_home))
    snapshot = published_snapshot(home)
    base, corpus = knowledge_base(home, snapshot), open_corpus(home, snapshot)
    hits = base.search("エラー メッセージ 一覧", "fulltext", 20).hits
    document, count = Counter(hit.document_id for hit in hits).most_common(1)[0]
    assert count > 1, "a document of several passages"
    alone = Question("q1", "alone", evidence=(Evidence(document),))
    quote = next(hit.text.split()[0] for hit in hits if hit.document_id == document)
    quoted = Question("q2", "quoted", evidence=(Evidence(document, quote=quote),))
    of_pages, of_documents = (
        SearchReward(base, corpus, [alone, quoted], "nDCG@10", level) for level in (Level.PAGE, Level.DOCUMENT)
    )
    assert [of_documents.rewards(alone), of_pages.rewards(alone)] == [True, False]
    assert of_pages.rewards(quoted)


class _Judged:
    """Questions whose evidence is known, of which nothing is searched."""

    name = "document nDCG@10"

    def __init__(self, documents: dict[str, str]) -> None:
        self._documents = documents

    def documents(self, question: Question) -> frozenset[str]:
        return frozenset({self._documents[question.id]})

    def worth(self, item: Item, text: str) -> float:
        del item, text
        return 0.0


@pytest.mark.parametrize("crowded", [0, 54])
def test_questions_are_parted_by_documents_in_fixed_shares(crowded: int) -> None:
    """However many questions one document holds: about six tenths train, one chooses, three prove."""
    questions = [Question(f"q{number}", f"question {number}") for number in range(93)]
    documents = {each.id: "crowd" if at < crowded else each.id for at, each in enumerate(questions)}
    reward = cast("SearchReward", _Judged(documents))
    data, proving = split(questions, {each.id for each in questions}, reward, [QueryForm.KEYWORDS], RuleRewriter())
    sizes = len(data.training), len(data.validation), len(proving)
    assert sizes == (56, 9, 28)
    texts = {each.text: documents[each.id] for each in questions}
    parts = [{texts[each.question] for each in part} for part in (data.training, data.validation)]
    parts.append({documents[each.id] for each in proving})
    assert not any(one & other for one, other in itertools.combinations(parts, 2)), "documents stay together"
    few = cast("SearchReward", _Judged({each.id: f"d{at % 3}" for at, each in enumerate(questions)}))
    with pytest.raises(QueryError, match="in 3 groups of documents, 5 are needed"):
        split(questions, set(), few, [QueryForm.KEYWORDS], RuleRewriter())


@without_torch
def test_without_the_extra_it_is_named_and_the_frozen_rewriter_writes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ModelError, match=r"torch is not installed: install it with pip install 'rag-assets\[train\]'"):
        training_library("torch")
    frozen, model = RuleRewriter(), TrainedModel(tmp_path, [QueryForm.KEYWORDS], 8)
    asked = "What is the return policy?"
    with caplog.at_level(logging.WARNING):
        rewriter = TrainedRewriter(model, frozen)
        assert [rewriter.rewrite(asked, ()) for _ in range(2)] == [frozen.rewrite(asked, ())] * 2
    assert len(caplog.records) == 1
