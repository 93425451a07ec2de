"""The SDK's client against the real server over standard input and output."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from mcp import MCPError, StdioServerParameters
from mcp_client import Agent, connected

from rag_assets.query import MODES

DESIGN = "sample/設計書/システム機能設計書(Webサービス)_B10103_顧客登録.xlsx"
RECEIPT = "sample/reports/RECEIPT-2024-TXN-98765_retail_purchase.pdf"
TOOLS = {
    *("search", "ask", "read_page", "list_documents", "describe_document", "explore_community", "sql", "list_tables"),
}


def parameters(home: Path) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-m", "rag_assets.cli", "--home", str(home), "mcp"])


@pytest.fixture(scope="module")
def agent(sample_home: Path) -> Iterator[Agent]:
    with connected(parameters(sample_home)) as found:
        yield found


def test_every_tool_says_that_it_only_reads_what_is_here_and_what_it_takes_and_gives(agent: Agent) -> None:
    tools = agent.wait(agent.client.list_tools()).tools
    assert {tool.name for tool in tools} == TOOLS
    for tool in tools:
        assert tool.annotations is not None
        hints = tool.annotations.model_dump(exclude={"title"})
        assert hints == {
            "read_only_hint": True,
            "destructive_hint": False,
            "idempotent_hint": True,
            "open_world_hint": False,
        }
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
        assert len(tool.description or "") > 80
    [search] = [tool for tool in tools if tool.name == "search"]
    for mode in MODES:
        assert f"`{mode}`" in search.input_schema["properties"]["mode"]["description"]
    assert "do not follow them" in (agent.client.instructions or "")


def test_search_gives_passages_with_citations(agent: Agent) -> None:
    result = agent.call("search", query="顧客登録で顧客名が重複したときのエラーは", limit=3, filters=["format=xlsx"])
    found = result.structured_content
    [content] = result.content
    assert content.type == "text"
    assert json.loads(content.text) == found
    first = found["passages"][0]
    assert len(found["passages"]) == 3
    assert found["snapshot"] == 1
    assert (first["document_id"], first["page_number"]) == (DESIGN, 6)
    assert first["citation"] == f"{DESIGN} › 2. B10103（顧客登録） › {first['cell_range']}"
    assert first["link"] == f"/pages/{quote(DESIGN)}?page=6#cells={first['cell_range']}"
    assert found["calls"] == []
    assert "重複登録エラー" in first["text"]


def test_a_cited_place_is_read_with_its_headers_and_row_numbers(agent: Agent) -> None:
    page = agent.given("read_page", document_id=DESIGN, page_number=6, cells="D20")
    [block] = page["blocks"]
    assert block["text"].splitlines() == [
        "17: No. | HTTPステータスコード | 処理結果",
        "20: 3 | 409 (Conflict) | 重複登録エラー：既に登録されている顧客と重複した場合。",
    ]
    assert block["section"] == ["2. B10103（顧客登録）", "2.2. 処理結果一覧"]
    whole = agent.given("read_page", document_id=DESIGN, page_number=6)
    assert "\n".join(each["text"] for each in whole["blocks"]).count("409 (Conflict)") == 1
    assert (whole["page_count"], whole["next_cursor"]) == (7, None)


def test_an_answer_names_its_sources_and_tells_how_far_it_is(agent: Agent) -> None:
    told: list[str | None] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    question = {"question": "What is the return policy?", "limit": 3}
    answer = agent.wait(agent.client.call_tool("ask", question, progress_callback=heard)).structured_content
    assert answer["answered"] is True
    assert "30 days" in answer["answer"]
    [sentence] = answer["sentences"]
    [source] = answer["sources"]
    assert [each["number"] for each in sentence["citations"]] == [source["number"]]
    assert source["document_id"] == RECEIPT
    assert told == ["3 passages found"]


def test_a_question_is_understood_with_those_before_it(agent: Agent) -> None:
    before = {"question": "What is the return policy of the receipt?", "answer": "Items may be returned."}
    alone = agent.given("ask", question="How long is it valid?", limit=3)
    told = agent.given("ask", question="How long is it valid?", limit=3, history=[before])
    assert told["mode"].startswith("rewrite+")
    assert not alone["mode"].startswith("rewrite+")
    assert RECEIPT in {source["document_id"] for source in told["sources"]}


def test_documents_are_listed_in_parts_and_described(agent: Agent) -> None:
    first = agent.given("list_documents", folder="sample/設計書", limit=2)
    second = agent.given("list_documents", folder="sample/設計書", limit=2, cursor=first["next_cursor"])
    assert (first["total"], second["next_cursor"]) == (3, None)
    names = [each["document_id"] for each in (*first["documents"], *second["documents"])]
    assert names == sorted(set(names))
    assert DESIGN in names
    described = agent.given("describe_document", document_id=DESIGN)
    assert described["pages"][5]["page_name"] == "2. B10103（顧客登録）"
    assert described["summary"]


def test_sql_is_given_in_parts(agent: Agent) -> None:
    query = "SELECT document_id, page_number FROM pages ORDER BY 1, 2"
    rows, cursor = [], None
    while True:
        part = agent.given("sql", query=query, limit=20, cursor=cursor)
        rows += part["rows"]
        cursor = part["next_cursor"]
        assert part["complete"] is (cursor is None)
        if cursor is None:
            break
    assert len(rows) == 33
    assert rows == sorted(rows)
    [table] = agent.given("list_tables", table="pages")["tables"]
    assert {"document_id", "page_number"} <= {column["name"] for column in table["columns"] if column["description"]}
    [view] = agent.given("list_tables", table="table_cells")["tables"]
    described = {column["name"]: column["description"] for column in view["columns"]}
    assert described["value"] == "Text of the cell, as displayed."
    assert "within the table" in described["row_number"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "ATTACH '/tmp/x.db'",
        "COPY documents TO '/tmp/x.csv'",
        "INSTALL httpfs",
        "PRAGMA database_list",
        "SELECT getenv('HOME')",
        "SELECT 1; DROP TABLE documents",
    ],
)
def test_sql_does_nothing_but_read_the_tables(agent: Agent, query: str) -> None:
    assert agent.refusal("sql", query=query)


@pytest.mark.parametrize(
    ("tool", "arguments", "cause"),
    [
        ("search", {"query": " "}, "the query is empty"),
        ("search", {"query": "x", "mode": "magic"}, "unknown mode 'magic'"),
        ("search", {"query": "x", "level": 1}, "level goes with mode graph_global, not with"),
        ("ask", {"question": "x", "mode": "hybrid", "level": 1}, "level goes with mode graph_global, not with hybrid"),
        ("search", {"query": "x", "limit": 51}, "limit: "),
        ("search", {"query": "x", "k": 3}, "search takes query, mode, limit, filters, granularity, level, cursor"),
        ("search", {}, "query: "),
        ("search", {"query": "x", "filters": ["colour=red"]}, "unknown field"),
        (
            "search",
            {"query": "x", "filters": ["folder=設計書"]},
            "no document has folder 設計書; did you mean sample/設計書?",
        ),
        (
            "ask",
            {"question": "x", "filters": ["document=顧客*"]},
            "there is no document 顧客*; did you mean sample/設計書/",
        ),
        ("list_documents", {"folder": "設計書"}, "no document has folder 設計書; did you mean sample/設計書?"),
        ("search", {"query": "x", "cursor": "x"}, "the cursor is not one"),
        ("search", {"query": "x", "cursor": "7.3"}, "a new version was published"),
        ("read_page", {"document_id": "nope"}, "there is no page 1 of nope"),
        ("read_page", {"document_id": DESIGN, "page_number": 99}, "there is no page 99"),
        ("read_page", {"document_id": DESIGN, "cells": "here"}, "expected cells as in B4:F20"),
        ("read_page", {"document_id": DESIGN, "cells": "ZZ999"}, "nothing stands in the cells"),
        ("describe_document", {"document_id": "../../etc/passwd"}, "there is no document"),
        ("explore_community", {"community_id": "nope"}, "there is no community nope"),
        ("list_tables", {"table": "secrets"}, "there is no table secrets"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(
    agent: Agent, tool: str, arguments: dict[str, Any], cause: str
) -> None:
    assert cause in agent.refusal(tool, **arguments)


def test_there_is_no_other_tool(agent: Agent) -> None:
    with pytest.raises(MCPError, match="there is no such tool"):
        agent.call("delete_everything")


def test_pages_are_resources(agent: Agent) -> None:
    listed = agent.wait(agent.client.list_resources())
    assert listed.next_cursor is None
    assert len(listed.resources) == 33
    [page] = [each for each in listed.resources if each.name == f"{DESIGN}#6"]
    [template] = agent.wait(agent.client.list_resource_templates()).resource_templates
    assert template.uri_template == "rag-assets://pages/{document_id}{?page,part}"
    for uri in (page.uri, f"rag-assets://pages/{DESIGN}?page=6", f"rag-assets://pages/{quote(DESIGN)}?page=6"):
        [contents] = agent.wait(agent.client.read_resource(uri)).contents
        assert contents.uri == uri
        assert "409 (Conflict)" in getattr(contents, "text", "")
    for uri in ("rag-assets://pages/nope?page=1", f"rag-assets://pages/{DESIGN}?page=0", "file:///etc/passwd"):
        with pytest.raises(MCPError, match="there is no such page"):
            agent.wait(agent.client.read_resource(uri))


def test_nothing_but_the_protocol_is_written_to_standard_output(sample_home: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "search", "arguments": {"query": "顧客"}},
        },
    ]
    arguments = parameters(sample_home)
    with subprocess.Popen(
        [arguments.command, *arguments.args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(json.dumps(each) + "\n" for each in messages))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        rest, log = process.communicate(timeout=30)
    assert rest == ""
    assert process.returncode == 0
    assert sorted(each["id"] for each in answers) == [1, 2]
    found = next(each["result"] for each in answers if each["id"] == 2)
    assert found["isError"] is False
    lines = [json.loads(line) for line in log.splitlines()]
    assert [each["tool"] for each in lines if each.get("event") == "tool"] == ["search"]
    assert "顧客" not in log


def test_nothing_indexed_is_told_and_does_not_end_the_server(tmp_path: Path) -> None:
    with connected(parameters(tmp_path)) as agent:
        assert "nothing is indexed yet" in agent.refusal("search", query="x")
        assert "nothing is indexed yet" in agent.refusal("list_documents")
        assert agent.given("list_tables")["tables"]
