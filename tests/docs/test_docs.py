"""The documentation says what is true: every command, setting, table and mode stands in it."""

import re
import runpy
from collections.abc import Iterable
from pathlib import Path

import click
import pytest

from rag_assets.cli import main
from rag_assets.contracts.formats import DocumentFormat
from rag_assets.contracts.tables import TABLES
from rag_assets.query import MODES
from rag_assets.serve.mcp.tools import TOOLS
from rag_assets.store.queries import read_queries

PROJECT = Path(__file__).parents[2]
GENERATED = runpy.run_path(str(PROJECT / "docs" / "generate.py"))["PAGES"]
READMES = ("README.md", "README.ja.md")


def text(*names: str) -> str:
    return "\n".join((PROJECT / name).read_text("utf-8") for name in names)


def require(words: Iterable[str], *names: str) -> None:
    page = text(*names)
    lacking = [word for word in words if word not in page]
    assert not lacking, f"write in {' or '.join(names)} what these are: {', '.join(lacking)}"


@pytest.mark.parametrize("name", GENERATED)
def test_generated_pages_are_up_to_date(name: str) -> None:
    assert text(f"docs/{name}") == GENERATED[name](), "run `make docs`"


@pytest.mark.parametrize("readme", READMES)
def test_commands_stand_in_the_readme(readme: str) -> None:
    require([f"rag-assets {name}" for name in main.commands], readme)
    assert text(readme).index("make demo") < text(readme).index("rag-assets index")


def test_options_stand_in_the_documentation() -> None:
    pages = ("query", "evaluation", "training", "operations", "language-models")
    page = text(*(f"docs/{name}.md" for name in pages))
    commands = dict(main.commands)
    for group in [each for each in main.commands.values() if isinstance(each, click.Group)]:
        commands |= group.commands
    for name, command in commands.items():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                option = max(parameter.opts, key=len)
                assert option in page, f"`rag-assets {name} {option}` stands in none of the pages on commands"


@pytest.mark.parametrize("readme", READMES)
def test_tables_and_modes_stand_in_the_readme(readme: str) -> None:
    require([f"`{name}`" for name in (*TABLES, "chunk_index", "summary_index", "snapshot", *MODES)], readme)


def test_modes_are_explained_where_people_choose_one() -> None:
    require([f"- `{name}`" for name in MODES], "docs/query.md")


def test_formats_stand_in_the_documentation() -> None:
    rows = [row.split("|")[1] for row in text("docs/operations.md").splitlines() if row.startswith("| ")]
    named = {name.strip() for row in rows for name in row.split(",")}
    lacking = {*DocumentFormat} - named
    assert not lacking, f"docs/operations.md, What is read: a row is missing for {sorted(lacking)}"


def test_views_stand_in_the_documentation() -> None:
    require([f"`{name}`" for name in read_queries()], "docs/operations.md", "docs/language-models.md")


def test_tools_stand_in_the_documentation_with_their_arguments() -> None:
    rows = [f"| `{tool.name}` | {', '.join(f'`{name}`' for name in tool.arguments.model_fields)} | " for tool in TOOLS]
    require(rows, "docs/mcp.md")


@pytest.mark.parametrize(
    "page",
    [
        *READMES,
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        *sorted(path.relative_to(PROJECT).as_posix() for path in (PROJECT / "docs").glob("*.md")),
        *sorted(path.relative_to(PROJECT).as_posix() for path in (PROJECT / "docs" / "quality").glob("*.md")),
    ],
)
def test_links_lead_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", text(page)):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        path = (PROJECT / page).parent / target if target else PROJECT / page
        assert path.exists(), link
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), link


def test_no_page_holds_both_sides_of_a_merge() -> None:
    pages = (*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md"))
    assert not [page for page in pages if re.search("^(?:<{7}|>{7}) ", page.read_text("utf-8"), re.MULTILINE)]


def anchors(path: Path) -> set[str]:
    """Names of the headings of a page, as links call them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
