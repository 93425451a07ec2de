"""The provider of vLLM where vLLM is not installed; `tests/extras` runs it for real."""

import sys

import pytest
from scripted_provider import UNLIMITED

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Message, Request, Tag
from rag_assets.models.vllm import VllmModel

REQUEST = Request("", (Message("user", "Hello."),), 10, Tag("tests", "vllm"))


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("vllm", "vllm.tokenizers"):
        monkeypatch.setitem(sys.modules, module, None)
    model = VllmModel("some/model", context_tokens=512)
    assert model.name == "vllm:some/model"
    assert model.facts.context_tokens == 512
    with pytest.raises(ModelError, match=r"pip install 'rag-assets\[vllm\]'"):
        model.count_tokens([REQUEST])
    with model.open(lambda _: None, UNLIMITED) as session:
        session.submit(REQUEST)
        with pytest.raises(ModelError, match=r"pip install 'rag-assets\[vllm\]'"):
            session.take(wait=True)
