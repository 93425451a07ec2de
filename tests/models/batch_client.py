"""The client process of the test of killed batches: asks what is not kept yet, and keeps what comes.

What is kept is written at once and outlives the process, as stored answers do.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from scripted_batches import batch_model
from scripted_provider import UNLIMITED

from rag_assets.contracts.generation import Completion, Message, Request, Tag


def ask(base_url: str, folder: Path, count: int, batch_requests: int) -> None:
    """Ask for what is not kept yet of so many answers."""
    kept_path, failed_path = folder / "kept.jsonl", folder / "failed.jsonl"
    lines = kept_path.read_bytes().split(b"\n") if kept_path.exists() else []
    kept = {json.loads(line)["text"] for line in lines[:-1]}
    output = os.open(kept_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def keep(answers: Sequence[Completion]) -> None:
        for answer in answers:
            line = {"text": answer.request.messages[-1].text, "answer": answer.text, "cost_usd": answer.cost_usd}
            os.write(output, json.dumps({**line, "batch_id": answer.batch_id}).encode() + b"\n")

    model = batch_model(
        base_url,
        folder,
        timeout_seconds=20.0,
        batch_from=1,
        batch_requests=batch_requests,
        poll_seconds=0.05,
        attempts=4,
        settle_seconds=0.3,
    )
    taken: dict[str, str] = {}
    with model.open(keep, UNLIMITED) as session:
        for number in range(count):
            text = f"document {number}"
            if text not in kept:
                message = Message("user", text)
                session.submit(Request("prefix", (message,), 100, Tag("documents", "summarize", f"d{number}")))
        while answer := session.take(wait=True):
            assert answer.request.tag.document_id == "d" + answer.request.messages[-1].text.split()[1]
            taken[answer.request.messages[-1].text] = answer.outcome
    failed_path.write_text(json.dumps({text: outcome for text, outcome in taken.items() if outcome == "failed"}))
