"""Language models that vLLM runs in this process, in batches (extra `vllm`)."""

import importlib
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, Outcome, Request, Usage
from rag_assets.contracts.ports import Session
from rag_assets.models.catalogue import ModelFacts, Prices, known_facts
from rag_assets.models.openai.endpoint import chat_messages, unquoted
from rag_assets.models.providers import CallBudget, Keep
from rag_assets.text.plain import one_line

BATCH_REQUESTS = 2048
# Small models write white space without end where it is allowed, and vLLM can forbid it for all requests only.
_ENGINE = {"structured_outputs_config": {"backend": "guidance", "disable_any_whitespace": True}}

Chat = list[dict[str, str]]


class VllmModel:
    """A model that vLLM runs in this process. It is loaded when first used, which takes minutes, and then kept.

    Args:
        model: Folder or hub name of the model.
        catalogue: The user's file of prices and limits.
        context_tokens: Tokens of prompt and answer together; 0 takes those of the catalogue or the model.
        engine: Further arguments of vLLM's engine.
        batch_requests: Requests that run as one batch, at most; their answers are kept when the last of them is done.
    """

    def __init__(
        self,
        model: str,
        catalogue: Path | None = None,
        context_tokens: int = 0,
        engine: Mapping[str, object] | None = None,
        batch_requests: int = BATCH_REQUESTS,
    ) -> None:
        self.name = f"vllm:{model}"
        self._model = model
        self._catalogue = catalogue
        self._context_tokens = context_tokens
        self._batch_requests = batch_requests
        limit = {"max_model_len": context_tokens} if context_tokens else {}
        self._engine = _Engine(model, {**_ENGINE, **(engine or {}), **limit})

    @cached_property
    def facts(self) -> ModelFacts:
        engine = self._engine
        return known_facts("vllm", self._model, self._catalogue, self._context_tokens, lambda: engine.context_tokens)

    @contextmanager
    def open(self, keep: Keep, budget: CallBudget) -> Iterator[Session]:
        yield _BatchSession(self._engine, keep, budget, self.facts.prices, self._batch_requests)

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        """Tokens of each request by the model's own tokenizer; the model itself is not loaded."""
        return [self._engine.count_tokens(chat_messages(request)) for request in requests]


class _BatchSession:
    """Gathers requests, and runs them as one batch when an answer is waited for, or there are enough of them."""

    def __init__(self, engine: "_Engine", keep: Keep, budget: CallBudget, prices: Prices, batch_requests: int) -> None:
        self._engine = engine
        self._keep = keep
        self._budget = budget
        self._prices = prices
        self._batch_requests = batch_requests
        self._waiting: list[Request] = []
        self._arrived: deque[Completion] = deque()
        self._cancelled = False

    def submit(self, request: Request) -> None:
        if self._cancelled:
            raise ModelError("vllm: the session has ended")
        self._budget.reserve(request)
        self._waiting.append(request)
        if len(self._waiting) >= self._batch_requests:
            self._run()

    def take(self, *, wait: bool) -> Completion | None:
        if wait and not self._arrived and self._waiting:
            self._run()
        return self._arrived.popleft() if self._arrived else None

    def cancel(self) -> None:
        """Run no further batch; one that runs cannot be ended."""
        self._cancelled = True

    def _run(self) -> None:
        batch, self._waiting = self._waiting, []
        if self._cancelled:
            return
        began_at = time.monotonic()
        completions: list[Completion] = []
        try:
            for request, outcome in self._answers(batch):
                completion = outcome if isinstance(outcome, Completion) else self._completion(request, outcome)
                completions.append(replace(completion, seconds=time.monotonic() - began_at, called_at=time.time()))
        finally:
            self._keep([completion for completion in completions if completion.outcome is not Outcome.FAILED])
            self._arrived.extend(completions)

    def _answers(self, batch: Sequence[Request]) -> Iterator[tuple[Request, Any]]:
        """Run a batch; vLLM refuses it as a whole for one request that it cannot take, which is found by halving."""
        try:
            yield from zip(batch, self._engine.chat(batch), strict=True)
        except _RefusedError as error:
            if len(batch) == 1:
                yield batch[0], Completion(batch[0], Outcome.FAILED, error=str(error), rejected=True)
                return
            for half in (batch[: len(batch) // 2], batch[len(batch) // 2 :]):
                yield from self._answers(half)

    def _completion(self, request: Request, answer: Any) -> Completion:
        output = answer.outputs[0]
        cached_tokens = answer.num_cached_tokens or 0
        usage = Usage(len(answer.prompt_token_ids or ()) - cached_tokens, len(output.token_ids), cached_tokens)
        completion = Completion(request, Outcome.COMPLETED, output.text, usage, self._prices.cost_usd(usage))
        match output.finish_reason:
            case "length":
                return replace(completion, outcome=Outcome.TRUNCATED)
            case "abort" | "error" | None:
                return replace(completion, outcome=Outcome.FAILED, text="", error="vllm: it gave up on the answer")
            case _:
                return completion if output.text.strip() else replace(completion, outcome=Outcome.EMPTY, text="")


class _RefusedError(Exception):
    """The engine refuses a batch for something in it."""


class _Engine:
    """vLLM's engine and tokenizer, each loaded when first used. Safe to use from several threads, which take turns."""

    def __init__(self, model: str, arguments: Mapping[str, object]) -> None:
        self._model = model
        self._arguments = arguments
        self._lock = threading.RLock()
        self._loaded: Any = None

    @cached_property
    def context_tokens(self) -> int:
        """Tokens of prompt and answer together; `ModelError` where the model cannot be loaded."""
        return int(self._llm.model_config.max_model_len)

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizers = _vllm("vllm.tokenizers")
        try:
            tokenizer: Any = tokenizers.get_tokenizer(self._model)
        except (OSError, ValueError) as error:
            raise ModelError(f"vllm: {self._model}: the tokenizer cannot be loaded: {error}") from error
        return tokenizer

    def count_tokens(self, chat: Chat) -> int:
        """Tokens of a conversation with what opens the answer; `ModelError` where the tokenizer cannot be loaded."""
        with self._lock:
            ids = self._tokenizer.apply_chat_template(
                chat, add_generation_prompt=True, tokenize=True, return_dict=False
            )
        return len(ids)

    def chat(self, requests: Sequence[Request]) -> Sequence[Any]:
        """Answer requests as one batch, in their order.

        Raises:
            _RefusedError: Something in the batch cannot be taken.
            ModelError: The model cannot be loaded, or failed; it is loaded anew when next used.
        """
        with self._lock:
            llm = self._llm
            exceptions = _vllm("vllm.exceptions")
            try:
                parameters = [self._sampling(llm, request) for request in requests]
                answers: Sequence[Any] = llm.chat(
                    [chat_messages(request) for request in requests], parameters, use_tqdm=False
                )
            except (exceptions.VLLMClientError, ValueError, TypeError) as error:
                sent_texts = [message.text for request in requests for message in request.messages]
                reason = unquoted(str(error), sent_texts) if len(requests) == 1 else ""
                raise _RefusedError(f"vllm: refused: {reason}" if reason else "vllm: refused") from None
            except (exceptions.VLLMError, RuntimeError, OSError) as error:
                self._loaded = None
                raise ModelError(f"vllm: {self._model}: the engine failed ({type(error).__name__})") from None
            return answers

    @property
    def _llm(self) -> Any:
        with self._lock:
            if self._loaded is None:
                vllm = _vllm("vllm")
                try:
                    self._loaded = vllm.LLM(model=self._model, **self._arguments)
                except (OSError, ValueError, RuntimeError) as error:
                    raise ModelError(f"vllm: {self._model}: it cannot be loaded: {error}") from error
            return self._loaded

    @staticmethod
    def _sampling(llm: Any, request: Request) -> object:
        """Parameters of sampling: those that the model's files name, and over them what the request says."""
        sampling = _vllm("vllm.sampling_params")
        parameters: dict[str, object] = dict(llm.model_config.get_diff_sampling_param())
        parameters |= {"max_tokens": request.max_tokens, "seed": request.seed, "stop": list(request.stop)}
        if request.temperature is not None:
            parameters["temperature"] = request.temperature
        if request.schema is not None:
            parameters["structured_outputs"] = sampling.StructuredOutputsParams(json=request.schema)
        return sampling.SamplingParams(**parameters)


def _vllm(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except (ImportError, OSError) as error:  # OSError: a library of torch that does not fit
        message = "language model vllm: install it with pip install 'rag-assets[vllm]'"
        raise ModelError(f"{message} ({one_line(error)})") from error
