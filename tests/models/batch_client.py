"""The client process of the test of killed batches: asks what is not kept yet, and keeps what comes.

What is kept is written at once and outlives the process, as stored answers do.
"""

import json
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from scripted_provider import state_of

from rag_assets.contracts.generation import Completion, Message, Request, Tag
from rag_assets.contracts.ports import Session
from rag_assets.models.anthropic.model import AnthropicModel
from rag_assets.models.anthropic.open_batches import BatchSettings
from rag_assets.models.catalogue import model_facts
from rag_assets.models.providers import CallBudget, Keep


def no_calls(keep: Keep, budget: CallBudget) -> AbstractContextManager[Session]:
    raise AssertionError("no single calls are expected")


def ask(base_url: str, folder: Path, count: int, batch_requests: int) -> None:
    """Ask for what is not kept yet of so many answers."""
    facts = model_facts("anthropic", "claude-haiku-4-5")
    assert facts
    kept_path, failed_path = folder / "kept.jsonl", folder / "failed.jsonl"
    lines = kept_path.read_bytes().split(b"\n") if kept_path.exists() else []
    kept = {json.loads(line)["text"] for line in lines[:-1]}
    output = os.open(kept_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def keep(answers: Sequence[Completion]) -> None:
        for answer in answers:
            line = {"text": answer.request.messages[-1].text, "answer": answer.text, "cost_usd": answer.cost_usd}
            os.write(output, json.dumps({**line, "batch_id": answer.batch_id}).encode() + b"\n")

    model = AnthropicModel(
        "anthropic:claude-haiku-4-5",
        "claude-haiku-4-5",
        facts,
        "sk-ant-secret",
        base_url,
        20.0,
        batch="always",
        batches=BatchSettings(state_of(folder), 1, batch_requests, 0.05, 4, settle_seconds=0.3),
        open_calls=no_calls,
    )
    taken: dict[str, str] = {}
    with model.open(keep) as session:
        for number in range(count):
            text = f"document {number}"
            if text not in kept:
                message = Message("user", text)
                session.submit(Request("prefix", (message,), 100, Tag("documents", "summarize", f"d{number}")))
        while answer := session.take(wait=True):
            assert answer.request.tag.document_id == "d" + answer.request.messages[-1].text.split()[1]
            taken[answer.request.messages[-1].text] = answer.outcome
    failed_path.write_text(json.dumps({text: outcome for text, outcome in taken.items() if outcome == "failed"}))
