"""The recipes of ARCHITECTURE.md, followed in a copy of the package: a format, a table with its step, and a mode."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
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


def wanted_page_counts(lake, shard):
    """What each document's row is computed from."""
    code = code_fingerprint(f"{__name__}:update_page_counts")
    return {name: digest(key, code) for name, key in lake.inputs(PAGES, shard).items()}


def update_page_counts(lake, shards):
    """Count the pages of some shards that changed."""
    report = StepReport()
    for shard in shards:

        def compute(documents, shard=shard):
            pages = lake.read(PAGES, [shard], ["document_id"])["document_id"].to_pylist()
            rows = [{"document_id": name, "shard": shard, "page_count": pages.count(name)} for name in documents]
            return {PAGE_COUNTS.name: pa.Table.from_pylist(rows, PAGE_COUNTS.schema)}

        update_shard(lake, [PAGE_COUNTS], shard, wanted_page_counts(lake, shard), compute, report)
    return report
'''
STEP_FUNCTIONS = """def _count_pages(work: StepWork) -> StepOutcome:
    from rag_assets.enrich.page_counts import update_page_counts

    return StepOutcome(update_page_counts(work.lake, work.shards))


def _wanted_page_counts(home: "Home", shard: str) -> Keys:
    from rag_assets.enrich.page_counts import wanted_page_counts

    return wanted_page_counts(home.lake, shard)


"""
STEP_ENTRY = """    Step(
        "count_pages",
        "Counts the pages of each document.",
        "enrichment",
        _count_pages,
        ("rag_assets.enrich.page_counts:update_page_counts",),
        (PAGE_COUNTS,),
        (PAGES,),
        wanted=_wanted_page_counts,
    ),
"""
MODE = '''"""Mode `recipe_mode`: passages by words, the worst first."""

from dataclasses import replace

from rag_assets.query.search.passages import search_fulltext


def search_x(request, indexes, trace):
    """What full text finds, turned around, with scores that fall from 0."""
    found = search_fulltext(request, indexes, trace)[::-1]
    return [replace(each, score=-place) for place, each in enumerate(found)]
'''


def edit(path: Path, before: str, after: str) -> None:
    text = path.read_text("utf-8")
    assert before in text, f"{path.name} has no {before!r}"
    path.write_text(text.replace(before, after, 1), "utf-8")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package in which the recipes were followed."""
    folder = tmp_path / "rag_assets"
    shutil.copytree(PROJECT / "rag_assets", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("sql", "dagster_home"):
        shutil.copytree(PROJECT / name, tmp_path / name)

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
    return folder


def test_a_format_a_step_and_a_mode_are_added_by_the_recipes(
    package: Path, tmp_path: Path, models_folder: Path
) -> None:
    source, home = tmp_path / "specs", tmp_path / "home"
    source.mkdir()
    home.mkdir()
    (home / "models").symlink_to(models_folder)
    (source / "a.recipelines").write_text("The harbour master signs the form.\n")
    (source / "b.md").write_text("The form of the harbour master has two pages, and nobody has read the second one.\n")

    def command(*arguments: str) -> str:
        environment = {**os.environ, "RAG_HOME": str(home), "PYTHONPATH": str(package.parent)}
        run = [sys.executable, "-m", "rag_assets.cli", *arguments]
        done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    command("index", f"specs={source}")
    counted = command("sql", "--json", "SELECT document_id, page_count FROM page_counts ORDER BY 1").splitlines()
    assert list(map(json.loads, counted)) == [
        {"document_id": "specs/a.recipelines", "page_count": 1},
        {"document_id": "specs/b.md", "page_count": 1},
    ]
    hits = json.loads(command("search", "harbour master form", "--mode", "recipe_mode", "--json"))["hits"]
    assert [hit["document_id"] for hit in hits] == ["specs/b.md", "specs/a.recipelines"]


def test_what_the_recipes_add_breaks_no_limit_of_the_linter(package: Path) -> None:
    shutil.copy(PROJECT / "pyproject.toml", package.parent)
    run = [sys.executable, "-m", "ruff", "check", "--no-cache", "--select=PLR0911,PLR0912,PLR0915", package.name]
    done = subprocess.run(run, capture_output=True, text=True, cwd=package.parent, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
