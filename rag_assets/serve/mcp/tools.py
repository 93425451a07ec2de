"""The tools: name, description, arguments and result of each, and who does it.

What stays out: how they are called over the protocol (`rag_assets.serve.mcp.server`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rag_assets.serve.limits import Work
from rag_assets.serve.mcp import schemas
from rag_assets.serve.mcp.calls import Call
from rag_assets.serve.mcp.contents_tools import (
    describe_document,
    explore_community,
    list_documents,
    list_tables,
    read_page,
    run_sql,
)
from rag_assets.serve.mcp.search_tools import ask, search
from rag_assets.serve.requests import Form
from rag_assets.serve.service import Service

_A = TypeVar("_A", bound=Form)


@dataclass(frozen=True)
class Tool(Generic[_A]):
    """A tool.

    Attributes:
        name: Its name.
        title: Its name for people.
        description: What it does and when to use it, for agents.
        arguments: What callers send.
        result: What it gives.
        work: In which threads it runs.
        run: Does it.
    """

    name: str
    title: str
    description: str
    arguments: type[_A]
    result: type[schemas.Result]
    work: Callable[[Service], Work]
    run: Callable[[Service, _A, Call], schemas.Result]


def _reads(run: Callable[[Service, _A], schemas.Result]) -> Callable[[Service, _A, Call], schemas.Result]:
    """A tool that is done soon: it tells nothing of its progress."""
    return lambda service, asked, _: run(service, asked)


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        "search",
        "Search",
        "Find passages of the indexed files (Excel, PDF, Word, slides and others) for a question, words or a code. "
        "Gives text with citations to the page, the sheet and the cells, best first. Use this to gather evidence and "
        "answer in your own words; follow up with read_page to see what stands around a passage.",
        schemas.SearchArguments,
        schemas.PassageList,
        lambda service: service.searching,
        search,
    ),
    Tool(
        "ask",
        "Ask",
        "Answer one question from the indexed files. Every sentence names its sources and tells whether their words "
        "were found there; where the files do not say, `answered` is false. The answer is written by the language "
        "model of the knowledge base, or quoted where it has none. It takes longer than search; prefer search where "
        "you write yourself.",
        schemas.AskArguments,
        schemas.AskResult,
        lambda service: service.asking,
        ask,
    ),
    Tool(
        "read_page",
        "Read a page",
        "Read a page, sheet or slide of a document in reading order: headings, paragraphs, and tables with the numbers "
        "of their rows. Long pages come in parts. With `cells`, only that part of a sheet: give the `cell_range` of a "
        "citation to see it with its column headers.",
        schemas.ReadPageArguments,
        schemas.PageResult,
        lambda service: service.reading,
        _reads(read_page),
    ),
    Tool(
        "list_documents",
        "List documents",
        "List the indexed documents, or those whose id or title holds some words, or that lie in a folder. Use "
        "describe_document for what is in one, and sql for counts and other conditions.",
        schemas.ListDocumentsArguments,
        schemas.DocumentList,
        lambda service: service.reading,
        _reads(list_documents),
    ),
    Tool(
        "describe_document",
        "Describe a document",
        "Tell what a document holds: its summary, kind, pages by number and name with summaries, and what could not "
        "be read.",
        schemas.DescribeDocumentArguments,
        schemas.DocumentResult,
        lambda service: service.reading,
        _reads(describe_document),
    ),
    Tool(
        "explore_community",
        "Explore communities",
        "Walk the communities of the entity graph, from the coarsest level 0 to finer ones: groups of related people, "
        "systems, tables and terms, each with a report. Without `community_id` it lists them by level; with one it "
        "gives the report, the parts to go into, the members and their relationships. Use it for questions about the "
        "whole.",
        schemas.ExploreCommunityArguments,
        schemas.CommunityResult,
        lambda service: service.reading,
        _reads(explore_community),
    ),
    Tool(
        "sql",
        "Query by SQL",
        "Run one SELECT statement (DuckDB) over the published tables: counts, lists, joins over documents, pages, "
        "passages, entities, failures and costs. Call list_tables first. Nothing else than reading these tables is "
        "allowed, and time, memory and rows are limited.",
        schemas.SqlArguments,
        schemas.SqlRows,
        lambda service: service.querying,
        _reads(run_sql),
    ),
    Tool(
        "list_tables",
        "List tables",
        "List the tables and views that sql can read, with their columns; with `table`, what each column holds.",
        schemas.ListTablesArguments,
        schemas.TableList,
        lambda service: service.reading,
        _reads(list_tables),
    ),
)
