"""What indexing now would cost, without a call: the steps run on a copy of the stored tables with a model that only
counts.
"""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assets.contracts.errors import ModelError, SettingsError
from rag_assets.contracts.fingerprint import digest
from rag_assets.contracts.generation import Completion, JsonValue, Request, request_key
from rag_assets.contracts.ports import LanguageModel
from rag_assets.models.catalogue import ModelFacts
from rag_assets.pipeline.freshness import changes_to_index, step_facts
from rag_assets.pipeline.language_models import check_language_model, language_model
from rag_assets.pipeline.steps import STEPS, StepWork, model_steps
from rag_assets.store.files import is_full, write_atomically
from rag_assets.store.lake import Lake
from rag_assets.store.snapshots import facts_digest

if TYPE_CHECKING:
    from rag_assets.graph.mentions.spans import Span
    from rag_assets.models.planning import PlanningModel, Simulate, StepPlan
    from rag_assets.models.structured import StructuredModel
    from rag_assets.pipeline.home import Home
    from rag_assets.query import KnowledgeBase
    from rag_assets.sources.changes import Changes, Listing

_PLAN_BYTES = 1 << 28  # of room, more than what new documents take that are read for a plan
_ESTIMATES_NOTE = (
    "glean_graph, confirm_entity, describe_entity and report_community are estimated from names that rules find: the "
    "model may find more or fewer"
)


@dataclass(frozen=True)
class PlannedStep:
    """What a step would cost."""

    asset: str  # table that the answers go into
    step: str
    documents: int  # documents that calls are made for
    calls: int
    stored: int  # answers that are there already
    input_tokens: int
    output_tokens: int
    cost_usd: float  # price with the settings in force

    def plus(self, other: "PlannedStep") -> "PlannedStep":
        """What both cost together."""
        return PlannedStep(
            f"{self.asset}, {other.asset}",
            self.step,
            max(self.documents, other.documents),
            self.calls + other.calls,
            self.stored + other.stored,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost_usd + other.cost_usd,
        )


@dataclass(frozen=True)
class Plan:
    """What indexing now would do."""

    changes: str  # digest of what has changed, which tells whether a later run did what was planned
    model: str
    documents: int  # documents that are new or changed
    steps: tuple[PlannedStep, ...]
    cost_usd: float  # price with the settings in force
    plain_usd: float  # price without batches and prompt cache
    prompt_cache_usd: float  # price with the prompt cache alone
    batch_usd: float  # price with batches alone
    batch_prompt_cache_usd: float  # price with both
    minutes: float | None  # time at the rate that the settings allow; None where they set no limit
    note: str | None  # how tokens were counted, where it was not by the model itself, and what was assumed

    @property
    def lines(self) -> tuple[PlannedStep, ...]:
        """The steps, each once: what is done for several tables is added up, under the names of all."""
        lines: dict[str, PlannedStep] = {}
        for step in self.steps:
            line = lines.get(step.step)
            lines[step.step] = step if line is None else line.plus(step)
        return tuple(lines.values())

    @property
    def calls(self) -> int:
        """Calls to make."""
        return sum(step.calls for step in self.steps)

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return sum(step.input_tokens + step.output_tokens for step in self.steps)


def make_plan(home: "Home") -> Plan:
    """Find out what indexing now would cost.

    Files that changed are parsed to know what is in them; nothing is stored.

    Raises:
        SettingsError: The settings of the language model do not fit.
    """
    listing = home.listing()
    changes = changes_to_index(home, listing)
    marks = _marks(home, listing, changes)
    documents = len(changes.new) + len(changes.changed)
    if home.language_model_name == "extractive":
        return Plan(marks, "extractive", documents, (), 0, 0, 0, 0, 0, None, None)
    from rag_assets.graph.mentions.dialogues import SIMULATED_STEPS

    model, unknown = _planning_model(home)
    with _copy_of(home.lake, home.path) as lake:
        asking, no_report = _asking(home, model), lambda _done, _total: None
        work = StepWork(home, lake, changes.shards, asking, no_report, _NoRecognizer(), listing)
        for step in STEPS[:2] + model_steps(home):  # files are parsed and cut first
            step.update(work)
    notes = _notes(home, _calibrated(home, model) or unknown)
    if unknown:
        context = f"{model.context_tokens:,} tokens"
        notes.append(f"a context of {context} is assumed: state it in language_model.context_tokens")
    if any(step.calls and step.step in SIMULATED_STEPS for step in model.steps.values()):
        notes.append(_ESTIMATES_NOTE)
    return _priced(home, model, marks, documents, notes)


def plan_calls(home: "Home", ask: Callable[[LanguageModel], object]) -> Plan:
    """What work with the language model would cost, without a call.

    Args:
        home: The knowledge base.
        ask: The work; what it makes of made-up answers is not looked at.
    """
    model, unknown = _planning_model(home)
    ask(_asking(home, model))
    return _priced(home, model, "", 0, _notes(home, _calibrated(home, model) or unknown))


def plan_questions(home: "Home", ask: "Callable[[KnowledgeBase], object]") -> list[Plan]:
    """Find out what questions to the published version would cost: they are asked of models that only count.

    Returns:
        A plan a model that would be called.
    """
    from rag_assets.models.structured import StructuredModel
    from rag_assets.pipeline.opening import knowledge_base
    from rag_assets.query.ask.written import graph_global, text_map_reduce
    from rag_assets.query.search import rewriting

    simulations: dict[str, Simulate] = dict.fromkeys((graph_global.MAP_STEP, text_map_reduce.MAP_STEP), _helpful)
    simulations[rewriting.STEP] = _rewritten
    counters: list[tuple[Home, PlanningModel, str | None]] = []

    def open_model(model_home: "Home") -> StructuredModel:
        model, unknown = _planning_model(model_home, simulations, remembers=True)
        counters.append((model_home, model, unknown))
        return StructuredModel(model, model_home.options.language_model.temperature)

    ask(knowledge_base(home, open_model=open_model))
    return [
        _priced(model_home, model, "", 0, _notes(model_home, unknown or _calibrated(model_home, model)))
        for model_home, model, unknown in counters
        if model.steps
    ]


def _helpful(request: Request, most_tokens: int) -> JsonValue:
    """An answer to a group of reports or passages that helps, so that what follows on it is counted."""
    from rag_assets.models.planning import made_up

    value = made_up(json.loads(request.schema or "{}"), most_tokens)
    return {**value, "helpfulness": 50} if isinstance(value, dict) else value


def _rewritten(request: Request, most_tokens: int) -> JsonValue:
    """A rewrite that finds other passages than the question: the first half of it."""
    del most_tokens
    query = re.search(r"<query-\w+>\n(.*?)\n</query-", request.messages[-1].text, re.DOTALL)
    text = query[1] if query else ""
    half = text[: (len(text) + 1) // 2]
    return {"keywords": half, "sentences": half}


def save_plan(home: "Home", plan: Plan) -> None:
    """Keep a plan, so that the run that follows can be compared with it; nothing where the home cannot be written."""
    if not os.access(home.path, os.W_OK):
        return
    facts = {"changes": plan.changes, "calls": plan.calls, "tokens": plan.tokens, "cost_usd": plan.cost_usd}
    try:
        write_atomically(home.path / "plan.json", json.dumps(facts).encode())
    except OSError as error:
        if not is_full(error):
            raise


def _planning_model(
    home: "Home", simulations: "Mapping[str, Simulate] | None" = None, *, remembers: bool = False
) -> "tuple[PlanningModel, str | None]":
    """A model that only counts; and why the one that would be called cannot be asked for its limits, if so."""
    from rag_assets.graph.mentions.dialogues import SIMULATED_STEPS, simulated_findings
    from rag_assets.models.planning import PlanningModel

    simulations = simulations or dict.fromkeys(SIMULATED_STEPS, simulated_findings)
    typical = home.ledger().mean_output_tokens(home.language_model_name)
    find = partial(_stored, home)
    planner = partial(PlanningModel, home.language_model_name, find=find, simulations=simulations, remembers=remembers)
    try:
        return planner(language_model(home), typical_output_tokens=typical), None
    except ModelError as error:  # the limits of a model may be its server's to tell
        return planner(None, typical_output_tokens=typical), str(error)


class _NoRecognizer:
    """Recognizes nothing: its names only stand in where a model fails, which is not planned for."""

    def recognize(
        self, texts: Sequence[str], language: str, progress: "Callable[[int], None]" = lambda _: None
    ) -> "list[tuple[Span, ...]]":
        """No entities of any text."""
        del language, progress
        return [()] * len(texts)


def _asking(home: "Home", model: "PlanningModel") -> "StructuredModel":
    from rag_assets.models.structured import StructuredModel

    choice = home.options.language_model  # with its repeats: stored answers of no use are asked again
    return StructuredModel(model, choice.temperature, repeats=choice.repeats)


def _calibrated(home: "Home", model: "PlanningModel") -> str | None:
    """Have the model itself count tokens; why it cannot, if so."""
    try:
        check_language_model(home)
        model.calibrate()
    except (ModelError, SettingsError) as error:
        return str(error)
    return None


def _stored(home: "Home", request: Request) -> Completion | None:
    from rag_assets.models.accounts.ledger import hit_of

    answer = home.answers.find(request_key(home.language_model_name, request), touch=False)
    return hit_of(request, answer) if answer else None


def _priced(home: "Home", model: "PlanningModel", marks: str, documents: int, notes: Sequence[str]) -> Plan:
    facts = home.options.language_model.facts or ModelFacts()
    settings = home.settings.language_model
    steps = list(model.steps.values())
    has_batches = settings.provider == "anthropic"

    def cost(step: "StepPlan", *, prompt_cache: bool, batch: bool) -> float:
        return step.cost_usd(facts, prompt_cache=prompt_cache, batch=batch)

    def in_batch(step: "StepPlan") -> bool:
        uses_batches = settings.batch == "always" or (settings.batch == "auto" and step.calls >= settings.batch_from)
        return has_batches and uses_batches

    def total(*, prompt_cache: bool, batch: bool) -> float:
        return sum(cost(step, prompt_cache=prompt_cache, batch=batch) for step in steps)

    plan_steps = tuple(
        PlannedStep(
            step.asset,
            step.step,
            step.documents,
            step.calls,
            step.stored,
            round(step.input_tokens),
            round(step.output_tokens),
            cost(step, prompt_cache=True, batch=in_batch(step)),
        )
        for step in steps
    )
    calls, tokens = sum(step.calls for step in steps), sum(step.input_tokens + step.output_tokens for step in steps)
    limits = [
        amount / rate
        for amount, rate in ((calls, settings.requests_per_minute), (tokens, settings.tokens_per_minute))
        if rate
    ]
    return Plan(
        changes=marks,
        model=model.name,
        documents=documents,
        steps=plan_steps,
        cost_usd=sum(step.cost_usd for step in plan_steps),
        plain_usd=total(prompt_cache=False, batch=False),
        prompt_cache_usd=total(prompt_cache=True, batch=False),
        batch_usd=total(prompt_cache=False, batch=has_batches),
        batch_prompt_cache_usd=total(prompt_cache=True, batch=has_batches),
        minutes=max(limits) if limits else None,
        note="; ".join(notes) or None,
    )


def take_plan(home: "Home", listing: "Listing", changes: "Changes") -> dict[str, float] | None:
    """Calls, tokens and price of the plan that was made for exactly these changes and this model, or None. It is good
    for one run.
    """
    path = home.path / "plan.json"
    try:
        facts = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    path.unlink(missing_ok=True)
    return facts if facts.pop("changes", None) == _marks(home, listing, changes) else None


def _marks(home: "Home", listing: "Listing", changes: "Changes") -> str:
    """Digest of what a plan was made for."""
    files = [f"{name} {listing.files[name].fingerprint}" for name in (*changes.new, *changes.changed)]
    model = (home.language_model_name, repr(home.options.language_model.facts), facts_digest(step_facts(home)))
    return digest(*model, *files, "", *changes.gone, "", *changes.shards)


def _notes(home: "Home", problem: str | None) -> list[str]:
    """What a person should know of the figures."""
    notes = []
    if home.options.language_model.facts is None:
        notes.append("the price of the model is not known: state it in a file that language_model.catalogue names")
    if problem:
        notes.append(f"tokens are estimated from characters: {problem}")
    elif home.settings.language_model.provider == "openai":
        notes.append("tokens are counted by the server's tokenizer, or estimated from characters where it has none")
    return notes


@contextmanager
def _copy_of(lake: Lake, home: Path) -> Iterator[Lake]:
    """The newest files of all stored tables, linked into a folder of their own, which is removed afterwards."""
    from rag_assets.contracts.tables import TABLES

    home.mkdir(parents=True, exist_ok=True)
    is_roomy = os.access(home, os.W_OK) and shutil.disk_usage(home).free > _PLAN_BYTES
    place = home if is_roomy else None  # else there is the room of temporary files
    with tempfile.TemporaryDirectory(prefix=".plan-", dir=place) as folder:
        copy = Lake(Path(folder))
        for table in TABLES.values():
            for path in lake.paths(table):
                link = copy.root / path.relative_to(lake.root)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(path)
        yield copy
