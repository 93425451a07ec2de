"""The recipes of ARCHITECTURE.md, all followed in one copy of the package."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scripted import Reply, ScriptedServer

PROJECT = Path(__file__).parents[1]
Command = Callable[..., str]
PARSER = '''"""Files of a toy format: one paragraph a line."""

from rag_assets.contracts.causes import BlockKind, PageKind
from rag_assets.contracts.content import Block, Page, ParsedDocument


def parse_x(data: bytes) -> ParsedDocument:
    """Parse a file."""
    blocks = tuple(Block(BlockKind.PARAGRAPH, line) for line in data.decode().splitlines())
    return ParsedDocument("recipelines", pages=(Page(1, PageKind.BODY, blocks),))
'''
TABLE = """PAGE_COUNTS = Table(
    "page_counts",
    "How many pages each document has.",
    ("document_id",),
    (DOCUMENT_ID, SHARD, column("page_count", pa.int32(), "Pages.")),
)

"""
STEP = '''"""The step that counts pages."""

import pyarrow as pa

from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.tables import PAGE_COUNTS, PAGES
from rag_assets.store.incremental import StepReport, update_shard


def wanted_page_counts(lake, shard, cover_pages):
    """What each document's row is computed from."""
    code = code_fingerprint(f"{__name__}:update_page_counts")
    return {name: digest(key, code, cover_pages) for name, key in lake.inputs(PAGES, shard).items()}


def update_page_counts(lake, shards, cover_pages):
    """Count the pages of some shards that changed, with their covers."""
    report = StepReport()
    for shard in shards:

        def compute(documents, shard=shard):
            pages = lake.read(PAGES, [shard], ["document_id"])["document_id"].to_pylist()
            counts = {name: pages.count(name) + cover_pages for name in documents}
            rows = [{"document_id": name, "shard": shard, "page_count": count} for name, count in counts.items()]
            return {PAGE_COUNTS.name: pa.Table.from_pylist(rows, PAGE_COUNTS.schema)}

        update_shard(lake, [PAGE_COUNTS], shard, wanted_page_counts(lake, shard, cover_pages), compute, report)
    return report
'''
STEP_FUNCTIONS = """def _count_pages(work: StepWork) -> StepOutcome:
    from rag_assets.enrich.page_counts import update_page_counts

    return StepOutcome(update_page_counts(work.lake, work.shards, work.home.settings.enrichment.cover_pages))


def _wanted_page_counts(home: "Home", shard: str) -> Keys:
    from rag_assets.enrich.page_counts import wanted_page_counts

    return wanted_page_counts(home.lake, shard, home.settings.enrichment.cover_pages)


"""
STEP_ENTRY = """    Step(
        "count_pages",
        "Counts the pages of each document.",
        "enrichment",
        _count_pages,
        ("rag_assets.enrich.page_counts:update_page_counts",),
        (PAGE_COUNTS,),
        (PAGES,),
        ("enrichment.cover_pages",),
        _wanted_page_counts,
    ),
"""
SETTING = """    cover_pages: int = Field(0, ge=0, description="Pages that a cover adds to each document.")
"""
MODE = '''"""Mode `recipe_mode`: passages by words, the worst first."""

from dataclasses import replace

from rag_assets.query.search.passages import search_fulltext


def search_x(request, indexes, trace):
    """What full text finds, turned around, with scores that fall from 0."""
    found = search_fulltext(request, indexes, trace)[::-1]
    return [replace(each, score=-place) for place, each in enumerate(found)]
'''

PROVIDER = '''"""Models of a toy provider, which is sent texts."""

import asyncio
import json
import urllib.request

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, Outcome, Usage
from rag_assets.models.catalogue import ModelFacts
from rag_assets.models.providers import CallError, CallProblem, unreachable_message
from rag_assets.text.tokens import estimate_tokens


def texts(request):
    return [request.prefix, request.system, *(message.text for message in request.messages)]


class ToyModel:
    """A `Provider`."""

    def __init__(self, choice, open_calls):
        self.name, self.facts = choice.name, choice.facts or ModelFacts()
        self._address, self._open_calls = choice.base_url, open_calls

    def open(self, keep, budget):
        return self._open_calls(lambda: ToyCaller(self._address, self.facts.prices), keep, budget)

    def count_tokens(self, requests):
        return [sum(map(estimate_tokens, texts(request))) for request in requests]


class ToyCaller:
    """A `Caller`."""

    def __init__(self, address, prices):
        self._address, self._prices = address, prices

    async def call(self, request):
        try:
            answer = await asyncio.to_thread(post, self._address, texts(request))
        except OSError as error:
            raise CallError(CallProblem.UNREACHABLE, unreachable_message(error)) from None
        usage = Usage(*answer["tokens"])
        return Completion(request, Outcome.COMPLETED, answer["text"], usage, self._prices.cost_usd(usage))

    async def close(self):
        pass


def post(address, sent):
    with urllib.request.urlopen(f"{address}/texts", json.dumps({"texts": sent}).encode()) as answer:
        return json.load(answer)


def check_reachable(address):
    try:
        post(address, [])
    except OSError as error:
        raise ModelError(unreachable_message(error)) from None
'''
REACHABLE = """        elif choice.provider == "toy":
            from rag_assets.models import toy

            toy.check_reachable(choice.base_url)
"""
PROVIDER_CASE = """    if choice.provider == "toy":
        from rag_assets.models.toy import ToyModel

        return ToyModel(choice, partial(open_session, choice, ledger.database, pacing))
"""
PRICES = """
[[model]]
provider = "toy"
model = "toy-1"
context_tokens = 8192
output_tokens = 1024
input_usd = 10.0
output_usd = 50.0
"""


def edit(path: Path, before: str, after: str) -> None:
    text = path.read_text("utf-8")
    assert before in text, f"{path.name} has no {before!r}"
    path.write_text(text.replace(before, after, 1), "utf-8")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package in which the recipes were followed."""
    project = tmp_path_factory.mktemp("project")
    folder = project / "rag_assets"
    shutil.copytree(PROJECT / "rag_assets", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("sql", "dagster_home"):
        shutil.copytree(PROJECT / name, project / name)

    row = '    RECIPE_LINES = "recipelines", Pages.SECTIONS, Reader.BUILT_IN, (), True\n'
    edit(folder / "contracts/formats.py", '    XLSX = "xlsx"', f'{row}    XLSX = "xlsx"')
    (folder / "parsing/plain/recipe_lines.py").write_text(PARSER)
    case = "        case DocumentFormat.RECIPE_LINES:\n"
    case += "            from rag_assets.parsing.plain.recipe_lines import parse_x\n\n"
    edit(
        folder / "parsing/parse.py",
        "        case DocumentFormat.TXT:\n",
        f"{case}            return parse_x(data)\n        case DocumentFormat.TXT:\n",
    )

    edit(folder / "contracts/tables.py", "DOCUMENT_FACETS = Table(", f"{TABLE}DOCUMENT_FACETS = Table(")
    (folder / "enrich/page_counts.py").write_text(STEP)
    edit(folder / "pipeline/steps.py", "    PAGE_SUMMARIES,\n", "    PAGE_SUMMARIES,\n    PAGE_COUNTS,\n")
    edit(folder / "pipeline/steps.py", "def _summarize_pages(", f"{STEP_FUNCTIONS}def _summarize_pages(")
    before = '    Step(\n        "summarize_files",'
    edit(folder / "pipeline/steps.py", before, STEP_ENTRY + before)

    (folder / "query/search/recipe_mode.py").write_text(MODE)
    texts = '{"en": "Worst first", "ja": "逆順"}, {"en": "backwards", "ja": "逆に探す"}, "nothing"'
    row = f'    SearchMode("recipe_mode", {texts}, uses_vector=False),\n'
    edit(folder / "contracts/modes.py", "SEARCH_MODES = (\n", f"SEARCH_MODES = (\n{row}")
    importing = "from rag_assets.query.search.sub_queries import"
    line = "from rag_assets.query.search.recipe_mode import search_x\n"
    edit(folder / "query/search/modes.py", importing, line + importing)
    entry = "_MODES: Mapping[str, Mode] = {\n"
    edit(folder / "query/search/modes.py", entry, f'{entry}    "recipe_mode": search_x,\n')
    settings = folder / "pipeline/settings.py"
    before = "    taxonomy: str = Field("
    edit(settings, before, SETTING + before)

    (folder / "models/toy.py").write_text(PROVIDER)
    models = folder / "models/language_models.py"
    edit(models, "    except ModelError as error:\n", f"{REACHABLE}    except ModelError as error:\n")
    before = "    from rag_assets.models.vllm import VllmModel\n"
    edit(models, before, PROVIDER_CASE + before)
    edit(settings, '"^(extractive|anthropic|', '"^(extractive|toy|anthropic|')
    with (folder / "models/catalogue.toml").open("a") as catalogue:
        catalogue.write(PRICES)
    return folder


@pytest.fixture(scope="module")
def command(package: Path, tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> Command:
    """Runs a command of the copy on files that it has indexed, with settings of the environment."""
    work = tmp_path_factory.mktemp("work")
    source, home = work / "specs", work / "home"
    source.mkdir()
    home.mkdir()
    (home / "models").symlink_to(models_folder)
    (source / "a.recipelines").write_text("The harbour master signs the form.\n")
    (source / "b.md").write_text("The form of the harbour master has two pages, and nobody has read the second one.\n")

    def run(*arguments: str, status: int = 0, **settings: str) -> str:
        variables = {f"RAG_{name}": value for name, value in settings.items()}
        environment = {**os.environ, "RAG_HOME": str(home), "PYTHONPATH": str(package.parent), **variables}
        line = [sys.executable, "-m", "rag_assets.cli", *arguments]
        done = subprocess.run(line, capture_output=True, text=True, cwd=work, env=environment, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout if status == 0 else done.stderr

    run("index", f"specs={source}")
    return run


def page_counts(command: Command) -> dict[str, int]:
    rows = map(json.loads, command("sql", "--json", "SELECT document_id, page_count FROM page_counts").splitlines())
    return {row["document_id"]: row["page_count"] for row in rows}


def test_a_format_a_step_and_a_mode_are_added_by_the_recipes(command: Command) -> None:
    assert page_counts(command).keys() == {"specs/a.recipelines", "specs/b.md"}
    hits = json.loads(command("search", "harbour master form", "--mode", "recipe_mode", "--json"))["hits"]
    assert [hit["document_id"] for hit in hits] == ["specs/b.md", "specs/a.recipelines"]


def test_a_setting_makes_the_step_stale_that_names_it(command: Command) -> None:
    assert set(page_counts(command).values()) == {1}
    assert json.loads(command("status", "--json"))["stale"] == []
    changed = {"ENRICHMENT__COVER_PAGES": "2"}
    [stale] = json.loads(command("status", "--json", **changed))["stale"]
    assert (stale["step"], stale["reason"]) == ("count_pages", "enrichment.cover_pages changed")
    command("index", **changed)
    assert set(page_counts(command).values()) == {3}


def test_a_provider_answers_and_is_missed_before_work_begins(command: Command) -> None:
    quote = {"number": 1, "quote": "harbour master"}
    sentences = [{"citations": [quote], "text": "The harbour master signs it."}]
    reply = {"text": json.dumps({"answered": True, "sentences": sentences}), "tokens": [1000, 100]}
    settings = {"LANGUAGE_MODEL__PROVIDER": "toy", "LANGUAGE_MODEL__MODEL": "toy-1"}
    with ScriptedServer() as server:
        server.replies("/texts", Reply(json=reply))
        settings["LANGUAGE_MODEL__BASE_URL"] = server.url
        answer = json.loads(command("ask", "Who signs the form?", "--mode", "fulltext", "--json", **settings))
        [received] = server.received
    assert "Who signs the form?" in received.json["texts"][-1]
    assert answer["answer"] == "The harbour master signs it. [1]"
    assert answer["trace"]["cost_usd"] == pytest.approx(0.015)
    assert "language model toy-1: is the server running?" in command("index", status=1, **settings)


def test_what_the_recipes_add_breaks_no_limit_of_the_linter(package: Path) -> None:
    shutil.copy(PROJECT / "pyproject.toml", package.parent)
    run = [sys.executable, "-m", "ruff", "check", "--no-cache", "--select=PLR0911,PLR0912,PLR0915", package.name]
    done = subprocess.run(run, capture_output=True, text=True, cwd=package.parent, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
