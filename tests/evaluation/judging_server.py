"""A server of the tests' own that judges by a script, behind the real model layer."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from scripted import Reply, ScriptedServer

from rag_assets.contracts.ports import LanguageModel
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.language_models import language_model
from rag_assets.pipeline.settings import load_settings

Script = Callable[[str, dict[str, Any]], Any]
CATALOGUE = """
[[model]]
provider = "openai"
model = "judge"
context_tokens = 32768
output_tokens = 8192
input_usd = 1.0
output_usd = 1.0
"""


def completion(text: str, reason: str = "stop") -> Reply:
    """An answer with what it took, as OpenAI's API gives it."""
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    body = {"id": "1", "object": "chat.completion", "model": "judge", "choices": [choice], "usage": usage}
    return Reply(json=body)


REFUSAL = completion("", "content_filter")


class JudgingServer(ScriptedServer):
    """Answers each conversation as the script says: a reply as it is, anything else as JSON.

    Attributes:
        asked: The last turns of the conversations.
        bodies: All that was asked.
        script: Given the last turn of the user and the whole body.
    """

    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script
        self.asked: list[str] = []
        self.bodies: list[str] = []
        self._order = threading.Lock()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers.get("content-length") or 0)) or b"{}")
        if not handler.path.endswith("/chat/completions"):
            self._write(handler, Reply(404, json={"error": {"message": "no such route"}}))
            return
        with self._order:
            asked = body["messages"][-1]["content"]
            self.asked.append(asked)
            self.bodies.append(json.dumps(body))
            answer = self.script(asked, body)
        reply = answer if isinstance(answer, Reply) else completion(json.dumps(answer, ensure_ascii=False))
        self._write(handler, reply)


def home_of(url: str, folder: Path, **settings: Any) -> Home:
    """A home whose language model is the server at an address; a call costs 0.0011 US dollars."""
    (folder / "models.toml").write_text(CATALOGUE)
    chosen = {"provider": "openai", "model": "judge", "base_url": f"{url}/v1", "catalogue": folder / "models.toml"}
    return Home(load_settings(home=folder / "home", language_model={**chosen, "attempts": 5, **settings}))


def judge_of(server: ScriptedServer, folder: Path, **settings: Any) -> LanguageModel:
    """The server as a judge, with stored answers, ledger and budget."""
    return language_model(home_of(server.url, folder, **settings))
