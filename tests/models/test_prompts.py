"""Prompts: both languages, placeholders as steps give them, documents that cannot leave their fence."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.contracts.errors import SettingsError
from rag_assets.models.prompts import LANGUAGES, fenced, load_prompt
from rag_assets.text.tokens import cut_to_tokens, estimate_tokens, split_to_tokens

PLACEHOLDERS = {
    "summarize_page": {"file_chars", "page_chars", "title", "page_names", "page_name", "common_lines", "document"},
    "summarize_file": {"file_chars", "title", "page_names", "document"},
    "classify_document": {"facets", "reasoning_chars", "title", "page_names", "document"},
    "ask_questions": {"title", "facets", "count", "document"},
    "answer_question": {"answer_chars", "document", "questions"},
    "grade_answer": {"reason_chars", "pairs"},
    "name_facet_value": {"description_chars", "terms", "others", "document"},
    "summarize_knowledge": {"summary_chars", "selection", "document"},
    "choose_knowledge": {"most", "groups", "query"},
    "augment_query": {"most", "query"},
    "plan_queries": {"most", "plan_chars", "query", "document"},
    "hypothetical_passage": {"query"},
    "rewrite_query": {"keywords_chars", "sentences_chars", "conversation", "query"},
    "answer_from_passages": {
        "most_sentences",
        "quote_chars",
        "passages",
        "background",
        "conversation",
        "query",
    },
    "answer_from_questions": {"most_sentences", "quote_chars", "records", "queries", "conversation", "query"},
    "map_passages": {"most_sentences", "quote_chars", "passages", "query", "conversation", "searched"},
    "judge_grades": {"reason_chars", "query", "passages", "answer"},
    "judge_preference": {"reason_chars", "criterion", "query", "answer1", "answer2"},
    "judge_claims": {"query", "answer"},
    "judge_faithfulness": {"reason_chars", "query", "passages", "sentences"},
    "describe_personas": {"personas", "tasks", "document"},
    "ask_as_persona": {"questions", "person", "document"},
    "reduce_passages": {"most_sentences", "findings", "query", "conversation", "searched"},
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("step", PLACEHOLDERS)
def test_placeholders_are_those_that_the_step_gives(step: str, language: str) -> None:
    prompt = load_prompt(step, language)
    assert prompt.placeholders == PLACEHOLDERS[step]
    assert "document" not in prompt.prefix.get_identifiers()


def test_other_languages_get_the_english_prompt() -> None:
    assert load_prompt("summarize_page", "de") is not None
    assert load_prompt("summarize_page", "und").language == "en"
    assert load_prompt("summarize_page", "ja").language == "ja"


def test_a_prompt_that_is_missing_is_named() -> None:
    with pytest.raises(SettingsError, match=r"nothing\.en\.md"):
        load_prompt("nothing", "en")


@given(st.text())
def test_a_document_cannot_leave_its_fence(text: str) -> None:
    result = fenced(text)
    tag = re.match(r"<(document-[0-9a-f]+)>\n", result)
    assert tag is not None
    assert result == f"<{tag[1]}>\n{text}\n</{tag[1]}>"
    assert tag[1] not in text


def test_a_document_that_holds_its_own_tag_gets_another() -> None:
    text = "x"
    for _ in range(3):
        text += re.findall(r"document-[0-9a-f]+", fenced(text))[0]
        assert re.findall(r"<(document-[0-9a-f]+)>", fenced(text))[0] not in text


@given(st.text(), st.integers(8, 200))
def test_parts_are_short_enough_and_lose_nothing(text: str, tokens: int) -> None:
    parts = split_to_tokens(text, tokens)
    assert all(estimate_tokens(part) <= tokens for part in parts)
    assert re.sub(r"\s", "", "".join(parts)) == re.sub(r"\s", "", text)


def test_a_text_is_cut_at_a_line() -> None:
    assert cut_to_tokens("一行目の文\n二行目の文\n三行目の文", 15) == "一行目の文\n二行目の文"
    assert cut_to_tokens("", 10) == ""
