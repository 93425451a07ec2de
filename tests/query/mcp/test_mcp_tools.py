"""Long pages and lists in parts, addresses, communities, and calls that nobody waits for any more."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from api_server import SlowBase
from graph_data import fill_lake, stored_tables
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp_client import Agent, connected

from rag_assets import open_version
from rag_assets.cli.serving import serve_options
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings
from rag_assets.query.contents.contents import Contents
from rag_assets.query.contents.page_images import PageImages
from rag_assets.query.contents.pages import PageBlock, shown_blocks
from rag_assets.query.published import Published
from rag_assets.serve.mcp.pages import PageAddress, lines_of, list_pages, parse_address, part_of, read_page_text
from rag_assets.serve.mcp.server import create_server
from rag_assets.serve.service import Service
from rag_assets.store.lake import Lake
from rag_assets.store.snapshots import Snapshot, Snapshots
from rag_assets.text.cells import parse_area


def table(rows: list[list[str]], top: int = 4) -> PageBlock:
    stored = [{"cells": cells, "cell_range": f"B{top + at}:C{top + at}", "box": None} for at, cells in enumerate(rows)]
    row = {
        "block_id": "t", "block_index": 1, "kind": "table", "text": "all", "section": ["1."], "box": None,
        "cell_range": f"B{top}:C{top + len(rows) - 1}", "header_row_count": 1, "rows": stored,
    }  # fmt: skip
    [block], _ = shown_blocks([row], 1 << 30, None)
    return block


GROUPED = table([["group", "name"], ["Group A", "x"], ["Group A", "y"], ["Group B", "z"]])


def test_every_row_is_read_by_itself() -> None:
    lines = list(lines_of([GROUPED]))
    assert [line.text for line in lines] == ["4: group | name", "5: Group A | x", "6: Group A | y", "7: Group B | z"]
    assert [line.text for line in lines_of([GROUPED], parse_area("C6"))] == ["4: group | name", "6: Group A | y"]
    assert list(lines_of([GROUPED], parse_area("D4:E9"))) == []


@given(st.integers(1, 60))
def test_parts_make_up_the_page_and_each_begins_with_the_headers_of_its_table(most_chars: int) -> None:
    lines = list(lines_of([GROUPED]))
    found, start = [], 0
    while start < len(lines):
        [block], stop = part_of(lines, start, most_chars)
        assert stop > start
        texts = block.text.splitlines()
        assert texts[0] == "4: group | name"
        assert block.continued is (start > 0)
        found += texts[1:] if start else texts
        start = stop
    assert found == [line.text for line in lines]


def test_a_page_is_laid_out_once_for_all_its_parts(sample_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = open_version(sample_home).contents
    laid_out = []

    def counted(held: Contents, document_id: str, page_number: int) -> Iterator[PageBlock]:
        laid_out.append(page_number)
        return page_blocks(held, document_id, page_number)

    page_blocks = Contents.page_blocks
    monkeypatch.setattr(Contents, "page_blocks", counted)
    document_id = contents.documents().items[0].document_id
    first = read_page_text(contents, str(PageAddress(document_id, 1)))
    assert read_page_text(contents, str(PageAddress(document_id, 1))) == first
    assert laid_out == [1]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.integers(1, 99), st.integers(1, 9))
def test_an_address_leads_back_to_its_page(document_id: str, page_number: int, part: int) -> None:
    address = PageAddress(document_id, page_number, part)
    assert str(address).isascii()
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "uri", ["", "rag-assets://pages/", "rag-assets://pages/a?page=x", "rag-assets://pages/a?part=0"]
)
def test_anything_else_is_no_address(uri: str) -> None:
    assert parse_address(uri) is None


def test_the_list_of_pages_goes_on_where_it_was_cut(sample_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assets.serve.mcp.pages._LISTED", 4)
    monkeypatch.setattr("rag_assets.serve.mcp.pages._DOCUMENTS", 2)
    snapshot = Snapshots(sample_home / "snapshots").current()
    assert snapshot is not None
    contents = Contents(Lake(sample_home / "lake"), snapshot)
    found: list[tuple[str, int]] = []
    cursor = None
    while True:
        pages, cursor = list_pages(contents, cursor)
        assert 0 < len(pages) <= 4
        found += [(document.document_id, number) for document, number in pages]
        if cursor is None:
            break
    assert len(set(found)) == len(found) == 33
    assert found == sorted(found)


@pytest.fixture
def slow() -> SlowBase:
    return SlowBase()


@pytest.fixture
def service(tmp_path: Path, slow: SlowBase) -> Iterator[Service]:
    """A small entity graph in the stored tables, and a model that is never done."""
    lake, snapshots = Lake(tmp_path / "lake"), Snapshots(tmp_path / "snapshots")
    fill_lake(lake)
    snapshots.publish(Snapshot(1, "", "", "", stored_tables(lake).versions, {}, {}))
    found = Service(
        Published(lake, snapshots, lambda _: slow),
        PageImages(dict),
        serve_options(Home(load_settings(home=tmp_path)), "127.0.0.1"),
    )
    yield found
    found.close()


@pytest.fixture
def agent(service: Service) -> Iterator[Agent]:
    with connected(create_server(service)) as found:
        yield found


def test_without_an_entity_graph_it_is_said_how_to_make_one(
    agent: Agent, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service.current().contents.graph, "levels", dict)
    assert "no entity graph: set RAG_GRAPH__ENABLED=true" in agent.refusal("explore_community")


def test_communities_are_explored_from_the_whole_to_members(agent: Agent) -> None:
    listed = agent.given("explore_community", level=0)
    assert listed["levels"][0] == {"level": 0, "communities": 1}
    [whole] = listed["communities"]
    looked = agent.given("explore_community", community_id=whole["community_id"], limit=2)
    details = looked["details"]
    assert details["report"]["title"] == whole["title"]
    assert {part["parent_id"] for part in details["parts"]} == {whole["community_id"]}
    names = [member["name"] for member in details["members"]]
    for relationship in details["relationships"]:
        assert {relationship["source"], relationship["target"]} <= set(names)
    while looked["next_cursor"]:
        looked = agent.given(
            "explore_community", community_id=whole["community_id"], limit=2, cursor=looked["next_cursor"]
        )
        names += [member["name"] for member in looked["details"]["members"]]
    assert len(names) == len(set(names)) == whole["size"]
    assert "there is no community" in agent.refusal("explore_community", community_id="nothing")


def test_nothing_more_is_written_for_a_caller_who_is_gone(service: Service, slow: SlowBase) -> None:
    async def leave() -> None:
        async with Client(create_server(service)) as client:
            asking = asyncio.create_task(client.call_tool("ask", {"question": "x"}))
            assert await asyncio.to_thread(slow.begun.wait, 10)
            asking.cancel()
            assert await asyncio.to_thread(slow.closed.wait, 10)

    asyncio.run(leave())


def test_text_that_is_no_unicode_is_mended(agent: Agent) -> None:
    assert agent.given("ask", question="broken")["answer"] == "half ? a sign"


def test_an_answer_names_the_calls_that_it_took(agent: Agent) -> None:
    facts = {"step": "answer_from_passages", "provider": "openai", "model": "m", "outcome": "failed", "cached": False}
    figures = {"input_tokens": 100, "cached_tokens": 20, "output_tokens": 7, "cost_usd": 0.25, "seconds": 1.0}
    assert agent.given("ask", question="broken")["calls"] == [facts | figures]


def test_a_list_of_another_form_is_refused_with_the_right_one(agent: Agent) -> None:
    refusal = agent.refusal("search", query="x", filters={"format": "xlsx"})
    assert refusal == 'filters: expected a list, as in ["format=xlsx"]'


def test_a_fault_of_the_server_is_told_without_its_cause(
    agent: Agent, slow: SlowBase, caplog: pytest.LogCaptureFixture
) -> None:
    assert agent.refusal("search", query="secret") == "the tool failed; see the log of the server"
    assert "secret" not in caplog.text
