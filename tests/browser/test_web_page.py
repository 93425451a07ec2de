"""The web page as people use it: a browser on `rag-assets serve` over a small real knowledge base with a token.

The browser is Debian's Chromium; where it or Playwright is missing, the tests are skipped.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from api_server import TOKEN, RunningServer, running
from click.testing import CliRunner

from rag_assets.cli import main
from rag_assets.evaluation.clicks import read_clicks
from rag_assets.evaluation.questions import Evidence, Question, question_line, read_questions
from rag_assets.query.ask.answers import Answer, Sentence, SentenceCitation, Source
from rag_assets.query.results import Citation, Hit, Trace, to_json
from rag_assets.text.plain import printable

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page, Route

PROJECT = Path(__file__).parents[2]
WEB = PROJECT / "rag_assets" / "serve" / "web"
RECEIPT = PROJECT / "docs" / "sample" / "reports" / "RECEIPT-2024-TXN-98765_retail_purchase.pdf"
ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync"
)
HOSTILE = """# Escaping <img src=x onerror="window.hacked=1">

The zebra rule: `<script>window.hacked=2</script>` and `<img src=x onerror="window.hacked=3">` stay text.

| name | value |
| --- | --- |
| zebra | `<svg onload="window.hacked=4">` |
"""
NOTES = """# Harbour

Mira Kovacs leads the Harbour Office in Zagreb. The Harbour Office keeps the Lantern Register.
The Lantern Register is printed in Vienna. Mira Kovacs lives in Vienna.
"""
VIEWS = (
    *("/", "/compare", "/documents", "/documents?status=failed", "/communities", "/documents/none.md"),
    *("/documents/specs/specs/token.xlsx", "/pages/specs/specs/token.xlsx?page=1#cells=A5:B6"),
    *("/pages/specs/receipt.pdf?page=1", "/evaluation"),
)
QUESTIONS = (
    Question(
        *("token", "トークンの有効期限は？", "ja", "number", True),
        (Evidence("token.xlsx", "Login", "トークンの有効期限"),),
        (("3600",),),
    ),
    Question("weather", "明日の大阪の天気予報は？", "ja", "unanswerable", answerable=False, purpose="choosing"),
)
FAULTS = Path(__file__).with_name("page_faults.js").read_text("utf-8").strip().rstrip(";")


def write_files(folder: Path) -> None:
    import openpyxl

    (folder / "specs").mkdir(parents=True)
    (folder / "notes").mkdir()
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Login"
    for row in [
        ["トークン仕様"],
        [],
        ["項目", "値", None, "備考"],
        [None, "本番", "試験", None],
        ["トークンの有効期限", "3600 秒", "60 秒", "期限切れは E0004"],
        ["再試行の回数", "5 回", "1 回", "超過は E0009"],
    ]:
        sheet.append(row)
    for cells in ("A3:A4", "B3:C3", "D3:D4"):
        sheet.merge_cells(cells)
    book.create_sheet("Codes").append(["E0004", "The token has expired"])
    book.save(folder / "specs" / "token.xlsx")
    shutil.copy(RECEIPT, folder / "receipt.pdf")
    (folder / "notes" / "hostile.md").write_text(HOSTILE, "utf-8")
    (folder / "notes" / "harbour.md").write_text(NOTES, "utf-8")
    (folder / "marks.md").write_text("The quagga invoice\u202efdp.exe\u2066 \u200eis due.\n", "utf-8")
    (folder / "broken.xlsx").write_text("no workbook", "utf-8")


@pytest.fixture(scope="module")
def chromium() -> str:
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, models_folder: Path, chromium: str) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("web")
    home = folder / "home"
    home.mkdir()
    (home / "models").symlink_to(models_folder)
    write_files(folder / "specs")
    arguments = ["--home", str(home), "index", f"specs={folder / 'specs'}"]
    result = CliRunner().invoke(main, arguments, env={"RAG_GRAPH__ENABLED": "true", "RAG_PARSING__WORKERS": "1"})
    assert result.exit_code == 0, result.output
    path = folder / "questions.jsonl"
    path.write_text("".join(f"{question_line(each)}\n" for each in QUESTIONS), encoding="utf-8")
    modes = ["--mode", "fulltext", "--mode", "vector", "--answers", "--record"]
    result = CliRunner().invoke(main, ["--home", str(home), "evaluate", str(path), *modes])
    assert result.exit_code == 0, result.output
    settings = {
        "RAG_SERVE__REQUESTS_PER_MINUTE": "0",
        "RAG_API_TOKEN": TOKEN,
        "RAG_EVALUATION__QUESTIONS": str(path),
    }
    with running(home, folder / "log.jsonl", **settings) as found:
        yield found


@pytest.fixture(scope="module")
def browser(chromium: str, server: RunningServer) -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=ARGUMENTS.split())
        yield browser
        browser.close()


class Visitor:
    """A person with a window of their own, who has shown the token."""

    def __init__(self, browser: "Browser", url: str, **options: Any) -> None:
        self.context = browser.new_context(base_url=url, **{"locale": "en-GB", **options})
        self.context.set_default_timeout(30_000)
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)

    def with_token(self) -> "Visitor":
        self.context.add_init_script(f"sessionStorage.setItem('rag_assets.token', '{TOKEN}')")
        return self

    def open(self, address: str) -> "Page":
        self.page.goto(address)
        self.page.locator("main h1").wait_for()
        return self.page

    def ask(self, question: str, *, search: bool = False) -> "Locator":
        """The turn with the answer or the results."""
        self.page.get_by_label("Question").fill(question)
        self.page.get_by_role("button", name="Search only" if search else "Ask", exact=True).click()
        turn = self.page.get_by_role("article").first
        turn.locator(".answer[aria-busy=false]").wait_for()
        return turn


@pytest.fixture
def visitor(browser: "Browser", server: RunningServer) -> Iterator[Visitor]:
    visitor = Visitor(browser, server.url).with_token()
    yield visitor
    visitor.context.close()
    assert visitor.errors == []


def test_the_token_is_asked_for_and_kept_for_the_window(browser: "Browser", server: RunningServer) -> None:
    visitor = Visitor(browser, server.url)
    page = visitor.page
    page.goto("/documents")
    dialog = page.get_by_role("dialog", name="API token")
    refused = dialog.get_by_role("alert").get_by_text("refused")
    dialog.get_by_label("Token").wait_for()
    assert not refused.is_visible()
    dialog.get_by_label("Token").fill("a-wrong-token-of-the-tests")
    page.keyboard.press("Enter")
    refused.wait_for()
    dialog.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    page.get_by_role("rowheader", name="token.xlsx").wait_for()
    page.reload()
    page.get_by_role("rowheader", name="token.xlsx").wait_for()
    assert not dialog.is_visible()
    assert TOKEN not in page.evaluate("JSON.stringify(localStorage)")
    visitor.context.close()


def test_a_search_leads_to_the_cited_cells(visitor: Visitor) -> None:
    page = visitor.open("/")
    turn = visitor.ask("トークンの有効期限", search=True)
    turn.get_by_role("link", name=re.compile("token.xlsx › Login")).first.click()
    cell = page.get_by_role("cell", name="3600 秒")
    cell.wait_for()
    assert cell.get_attribute("aria-current") == "location"
    assert re.search(r"#cells=A\d", page.url)
    assert page.evaluate("document.activeElement.classList.contains('cited')")
    top = page.locator(".cited").first.bounding_box()
    assert top and 0 <= top["y"] < 900


def test_a_sheet_is_shown_with_merged_cells_and_only_cited_ones_marked(visitor: Visitor) -> None:
    page = visitor.open("/pages/specs/specs/token.xlsx?page=1#cells=B5:C5")
    head = page.get_by_role("columnheader", name="値")
    assert head.get_attribute("colspan") == "2"
    assert page.get_by_role("columnheader", name="項目").get_attribute("rowspan") == "2"
    marked = page.locator("[aria-current=location]")
    assert marked.all_inner_texts() == ["3600 秒", "60 秒"]
    page.get_by_role("link", name="Next page").click()
    page.get_by_role("heading", level=1, name="Codes").wait_for()
    assert page.evaluate("document.activeElement.tagName") == "H1"
    assert "Codes" in page.title()
    page.go_back()
    page.get_by_role("heading", level=1, name="Login").wait_for()


def test_a_box_is_drawn_over_the_picture_of_a_pdf_page(visitor: Visitor) -> None:
    page = visitor.open("/")
    turn = visitor.ask("return policy days", search=True)
    turn.get_by_role("link", name=re.compile("receipt.pdf")).first.click()
    box = page.get_by_role("img", name="Cited place")
    box.wait_for()
    picture = page.get_by_role("img", name="Picture of page 1")
    assert picture.evaluate("node => node.naturalWidth") > 500
    inner, outer = box.bounding_box(), picture.bounding_box()
    assert inner and outer
    assert outer["x"] <= inner["x"] and inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 6
    assert inner["height"] > 20


def test_an_answer_has_citations_that_lead_to_sources_and_a_follow_up_knows_the_question(visitor: Visitor) -> None:
    page = visitor.open("/")
    turn = visitor.ask("トークンの有効期限は？")
    assert "3600 秒" in turn.locator(".answer").inner_text()
    turn.get_by_role("button", name=re.compile("Source 1:")).first.click()
    source = turn.get_by_role("complementary", name="Sources").get_by_role("listitem").first
    assert source.evaluate("node => node === document.activeElement")
    address = source.get_by_role("link").get_attribute("href") or ""
    assert address.startswith("/pages/specs/specs/token.xlsx?page=1#cells=")
    assert "What was done All that speaks for a passage (weighted) ·" in turn.inner_text()
    with page.expect_request("**/api/v1/ask") as sent:
        visitor.ask("それは試験では？")
    body = json.loads(sent.value.post_data or "")
    assert [each["question"] for each in body["history"]] == ["トークンの有効期限は？"]
    assert body["mode"] == "auto"
    assert page.get_by_role("article").count() == 2
    page.get_by_role("link", name="Documents", exact=True).click()
    page.get_by_role("link", name="Ask", exact=True).click()
    assert page.get_by_role("article").count() == 2
    page.get_by_role("button", name="New conversation").click()
    assert page.get_by_role("article").count() == 0


def written_answer() -> dict[str, object]:
    """As a model may have written it: one sentence that its source bears out and one that it does not."""
    sentences = [
        Sentence("Yes <b>bold</b>.", (SentenceCitation(1, "yes", supported=True),)),
        Sentence("No 42.", (SentenceCitation(1, "nowhere", supported=False),), ("42",)),
    ]
    place = Citation("d.md", 1, None, None, None, "md")
    hit = Hit(1, 1.0, "d.md", "d.md#1", 1, None, "d.md#1.0", "it says yes", "d", place)
    sources = (Source.of(1, hit, hit.text),)
    answer = Answer("q", "hybrid", True, "Yes. No.", tuple(sentences), sources, Trace((), 1.0), "m", 1)
    content: dict[str, object] = to_json(answer)
    return content


@pytest.mark.parametrize("streamed", [True, False])
def test_what_a_model_wrote_is_shown_as_it_comes_and_doubts_are_marked(visitor: Visitor, *, streamed: bool) -> None:
    answer = json.dumps(written_answer())
    events = f'event: text\ndata: {{"text": "Y"}}\n\n: still writing\n\nevent: answer\ndata: {answer}\n\n'
    body, kind = (events, "text/event-stream") if streamed else (answer, "application/json")
    visitor.page.route("**/api/v1/ask", lambda route: route.fulfill(body=body, content_type=kind))
    visitor.open("/")
    turn = visitor.ask("q")
    text = turn.locator(".answer").inner_text()
    assert "Yes <b>bold</b>. [1]" in text
    assert "No 42. [1] ⚠ Not confirmed by the sources ⚠ Not in the sources: 42" in text
    assert "Written by m" in text
    assert turn.locator("mark").all_inner_texts() == ["yes"]
    assert "The quoted words do not stand here" in turn.get_by_role("complementary").inner_text()


def test_an_answer_that_its_sources_do_not_confirm_is_told_from_passages_that_are_near(visitor: Visitor) -> None:
    answer = written_answer()
    answer |= {"answered": False, "sentences": answer["sentences"][1:]}  # type: ignore[index]
    visitor.page.route("**/api/v1/ask", lambda route: route.fulfill(body=json.dumps(answer)))
    visitor.open("/")
    text = visitor.ask("q").locator(".answer").inner_text()
    assert "The sources confirm no sentence of this answer" in text
    assert "Nearest passages" not in text
    assert "Written by m" in text


def test_words_that_were_sought_by_others_are_told_above_quotes(visitor: Visitor) -> None:
    note = "「夏休み」は見当たらないため「夏季休暇」で探しました。"
    answer = written_answer() | {"model": None, "answer": f"{note}\n資料の記載:\n- 8月11日から [1]"}
    visitor.page.route("**/api/v1/ask", lambda route: route.fulfill(body=json.dumps(answer)))
    visitor.open("/")
    text = visitor.ask("q").locator(".answer").inner_text()
    assert note in text
    assert "資料の記載" not in text


def test_what_is_not_in_the_documents_and_what_fails_is_said(visitor: Visitor) -> None:
    visitor.open("/")
    turn = visitor.ask("zzqx wwvk")
    assert "No passage surely answers the question" in turn.inner_text()
    failure = 'event: error\ndata: {"status": 502, "detail": "the model is gone"}\n\n'
    visitor.page.route("**/api/v1/ask", lambda route: route.fulfill(body=failure, content_type="text/event-stream"))
    turn = visitor.ask("again")
    assert "the model is gone" in turn.get_by_role("alert").inner_text()
    visitor.page.unroute("**/api/v1/ask")
    turn.get_by_role("button", name="Try again").click()
    turn.get_by_text("No passage surely answers").or_(turn.locator(".cite")).first.wait_for()


def test_an_answer_that_breaks_off_is_not_asked_for_again_by_itself(visitor: Visitor) -> None:
    asked: list[str] = []

    def break_off(route: "Route") -> None:
        asked.append(route.request.url)
        route.fulfill(body='event: text\ndata: {"text": "Y"}\n\n', content_type="text/event-stream")

    visitor.page.route("**/api/v1/ask", break_off)
    visitor.open("/")
    turn = visitor.ask("q")
    assert "broke before the answer was complete" in turn.get_by_role("alert").inner_text()
    assert len(asked) == 1
    turn.get_by_role("button", name="Try again").click()
    visitor.page.wait_for_timeout(500)
    assert len(asked) == 2


def test_an_answer_that_takes_too_long_is_stopped(visitor: Visitor) -> None:
    page = visitor.open("/")
    page.route("**/api/v1/ask", lambda _: None)
    page.get_by_label("Question").fill("token")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Stop").click()
    assert page.get_by_role("alert").get_by_text("Stopped.").is_visible()


def test_documents_are_listed_with_state_and_cause_and_found_by_folder(visitor: Visitor) -> None:
    page = visitor.open("/documents")
    row = page.get_by_role("row").filter(has_text="broken.xlsx")
    assert "failed: damaged" in row.inner_text()
    page.get_by_label("Folder").select_option("specs/notes")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("heading", name="Documents: 2").wait_for()
    page.get_by_label("Folder").select_option("")
    page.get_by_label("State").select_option("failed")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="broken.xlsx").click()
    page.get_by_role("heading", name="What could not be read").wait_for()
    assert "Cannot detect file format" in page.locator("main").inner_text()


def test_failed_documents_add_up_and_those_read_in_part_are_told_apart(visitor: Visitor) -> None:
    def with_partly_read(route: "Route") -> None:
        response = route.fetch()
        counts = {"partly_read_count": 2, "failures_by_cause": {"malformed": 1, "no_text": 4}}
        route.fulfill(response=response, json=response.json() | counts)

    visitor.page.route("**/api/v1/status", with_partly_read)
    page = visitor.open("/documents")
    page.get_by_role("rowheader", name="broken.xlsx").wait_for()
    assert "failed: 1 (damaged 1) · read in part: 2 · Pages:" in page.locator("main").inner_text()


def test_names_of_columns_are_not_broken_within_words(visitor: Visitor) -> None:
    page = visitor.open("/documents")
    page.set_viewport_size({"width": 1300, "height": 800})
    page.get_by_role("rowheader", name="broken.xlsx").wait_for()
    wide = "[...document.querySelectorAll('tbody th a')].forEach(each => each.textContent = 'x'.repeat(150))"
    page.evaluate(wide)
    heads = page.get_by_role("columnheader")
    boxes = [each.bounding_box() for each in heads.all()]
    assert len({round(box["height"]) for box in boxes if box}) == 1
    lines = (
        "each => { const at = document.createRange(); at.selectNodeContents(each); return at.getClientRects().length }"
    )
    assert [each.evaluate(lines) for each in heads.all()] == [1] * heads.count()
    costs = page.locator("tbody tr td:last-child span")
    assert [each.evaluate(lines) for each in costs.all()] == [1] * costs.count()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [1300, 390])
def test_codes_and_row_numbers_in_wide_tables_stand_on_one_line(visitor: Visitor, width: int) -> None:
    def widened(route: "Route") -> None:
        told = route.fetch().json()
        for block in told["blocks"]:
            for row in block["rows"]:
                row["cells"] = [{**cell, "text": "E0004-" + cell["text"]} for cell in row["cells"] * 8]
        route.fulfill(json=told)

    visitor.page.set_viewport_size({"width": width, "height": 800})
    visitor.page.route("**/api/v1/pages/**", widened)
    page = visitor.open("/pages/specs/specs/token.xlsx?page=1")
    page.get_by_text("E0004-備考").first.wait_for()
    broken = """[...document.querySelectorAll(".cells .row-number, .cells .text")].filter((cell) => {
      const end = cell.textContent.startsWith("E0004-") ? 6 : cell.textContent.length;
      const at = document.createRange();
      at.setStart(cell.firstChild, 0);
      at.setEnd(cell.firstChild, end);
      return new Set([...at.getClientRects()].map((box) => Math.round(box.top))).size > 1;
    }).map((cell) => cell.textContent)"""
    assert page.evaluate(broken) == []
    scrolls = (
        "document.querySelector('.scroll:has(.cells)').scrollWidth > document.querySelector('.scroll').clientWidth"
    )
    assert page.evaluate(scrolls)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_community_is_explored_by_graph_and_by_list(visitor: Visitor) -> None:
    page = visitor.open("/communities")
    page.get_by_label("Level").wait_for()
    page.locator("main .card a").first.click()
    graph = page.get_by_role("img", name=re.compile(r"Graph of \d+ entities"))
    graph.wait_for()
    page.get_by_role("heading", name="Report").wait_for()
    member = page.locator(".members button").first
    name = member.inner_text()
    member.click()
    panel = page.get_by_role("region", name="Entity")
    panel.get_by_role("heading", name=name).wait_for()
    assert (graph.locator(".node.chosen title").first.text_content() or "").startswith(name)
    other = graph.locator(".node:not(.chosen) circle").first
    picked = other.evaluate("node => node.parentNode.querySelector('title').textContent")
    other.click()
    panel.get_by_role("heading", name=picked.rsplit(" (", 1)[0]).wait_for()
    before = graph.get_attribute("viewBox")
    graph.focus()
    page.keyboard.press("+")
    assert graph.get_attribute("viewBox") != before
    panel.get_by_role("link").first.click()
    page.locator("[aria-current=location]").first.wait_for()


def test_without_a_graph_it_is_said_how_to_make_one(visitor: Visitor) -> None:
    def without_graph(route: "Route") -> None:
        route.fulfill(json={**route.fetch().json(), "graph": False})

    visitor.page.route("**/api/v1/status", without_graph)
    page = visitor.open("/communities")
    assert "RAG_GRAPH__ENABLED=true rag-assets index" in page.get_by_role("main").inner_text()


def test_modes_are_compared_side_by_side(visitor: Visitor) -> None:
    page = visitor.open("/compare")
    page.get_by_role("searchbox", name="Question").fill("token expired")
    for mode in ("vector", "rewrite", "two_step"):
        page.get_by_label(f"({mode})").check()
    page.get_by_role("button", name="Compare").click()
    assert "two to four" in page.get_by_role("alert").inner_text()
    page.get_by_label("(rewrite)").uncheck()
    page.get_by_role("button", name="Compare").click()
    columns = page.locator(".column")
    page.get_by_text("also in").first.wait_for()
    assert columns.count() == 4
    for at in range(4):
        assert re.search(r"[\d.,]+ ms, model calls: 0, cost: (US)?\$0.00", columns.nth(at).inner_text())
        assert columns.nth(at).get_by_role("row").count() > 1
    scores = columns.first.get_by_text("Scores before and after").first
    scores.click()
    table = columns.first.get_by_role("region", name="Scores before and after").first
    assert [each.inner_text() for each in table.get_by_role("columnheader").all()] == ["Passage", "Before", "After"]
    assert table.get_by_role("row").count() > 1
    page.get_by_label("With answers").check()
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("Quoted as it stands").first.wait_for()


def test_an_evaluation_is_looked_into_down_to_what_was_expected_and_came(visitor: Visitor) -> None:
    page = visitor.open("/evaluation")
    row = page.get_by_role("row").filter(has_text="vector")
    assert re.search(r"version 1\s+questions.jsonl ⚠ used for choosing\s+command\s+2\s", row.inner_text())
    row.get_by_role("link").click()
    page.get_by_role("heading", level=2, name="Where it fails").wait_for()
    assert "1 of 2 questions were used for choosing" in page.get_by_role("main").inner_text()
    assert re.search(
        r"fulltext\s+version 1\s+1 \[[\d.]+, 1\]\*", page.get_by_role("region", name="Passages").inner_text()
    )
    assert page.get_by_role("region", name="Answers, correct: Type").get_by_role("row").count() == 3
    page.get_by_label("Type", exact=True).select_option("number")
    page.get_by_role("link", name="トークンの有効期限は？").click()
    expected = page.get_by_role("region", name="Expected")
    expected.wait_for()
    assert "token.xlsx › Login" in expected.inner_text()
    side = page.get_by_role("region", name="fulltext, version 1")
    assert "✓ holds the evidence" in side.inner_text()
    assert "right" in side.inner_text()
    assert page.evaluate(FAULTS) == []
    side.get_by_role("link").first.click()
    page.get_by_role("cell", name="3600 秒").wait_for()


def test_two_modes_are_compared_on_the_questions_that_both_were_asked(visitor: Visitor) -> None:
    page = visitor.open("/evaluation")
    page.get_by_role("button", name="Compare").click()
    assert page.get_by_role("alert").inner_text() == "Choose two."
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Compare").click()
    differences = page.get_by_role("region", name="Differences")
    differences.wait_for()
    assert re.search(r"answer correct\s+-?\d", differences.inner_text())
    assert page.get_by_role("heading", name=re.compile(r"What differs: \d+")).is_visible()


def test_a_thumb_on_an_answer_becomes_a_draft_of_the_question_set(visitor: Visitor, server: RunningServer) -> None:
    path = server.log.with_name("questions.jsonl")
    visitor.open("/")
    turn = visitor.ask("再試行の回数は？")
    for name, told in (("This answer is wrong", "wrong: "), ("This answer is right", "right: ")):
        button = turn.get_by_role("button", name=name)
        button.wait_for()  # it comes after the page has asked, at the same address, whether feedback is taken
        with visitor.page.expect_response("**/api/v1/feedback") as sent:
            button.click()
        assert sent.value.status == 200
        *accepted, draft = read_questions(path)
        assert accepted == list(QUESTIONS)
        assert (draft.text, draft.draft, draft.type) == ("再試行の回数は？", True, "feedback")
        assert draft.note.startswith(told)
    assert any("token.xlsx" in each.document and each.place == "Login" and each.quote for each in draft.evidence)
    turn.get_by_text("Thank you").wait_for()


def test_opening_a_result_of_a_search_is_written_down(visitor: Visitor, server: RunningServer) -> None:
    visitor.open("/")
    places = visitor.ask("再試行の回数は？", search=True).get_by_role("link")
    assert places.count() > 2
    with visitor.page.expect_response("**/api/v1/clicks") as sent:
        places.nth(2).click()
    assert sent.value.json() == {"rank": 3}
    click = read_clicks(server.log.with_name("home") / "evaluation" / "clicks.jsonl")[-1]
    assert click.question == "再試行の回数は？"
    assert len({click.result, *click.above}) == 3


def test_text_of_documents_is_inert(visitor: Visitor) -> None:
    page = visitor.open("/")
    turn = visitor.ask("zebra rule")
    assert "<script>window.hacked=2</script>" in turn.inner_text()
    turn.get_by_role("complementary").get_by_role("link").first.click()
    page.get_by_role("heading", level=2, name=re.compile("Escaping")).wait_for()
    shown = page.locator("main").inner_text()
    assert "<script>window.hacked=2</script>" in shown
    assert '<svg onload="window.hacked=4">' in shown
    page.wait_for_timeout(300)
    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main img, main svg").count() == 0


def test_text_that_would_be_reordered_or_hidden_is_shown_as_on_a_terminal(visitor: Visitor) -> None:
    page = visitor.open("/")
    turn = visitor.ask("quagga invoice")
    assert r"quagga invoice\u202efdp.exe\u2066 \u200e" in turn.inner_text()
    assert not re.search("[\u202e\u2066\u200e]", page.content())
    turn.get_by_role("complementary").get_by_role("link").first.click()
    page.get_by_text(r"quagga invoice\u202efdp.exe").filter(visible=True).first.wait_for()
    assert not re.search("[\u202e\u2066\u200e]", page.content())
    characters = [chr(code) for code in (*range(0x10000), *range(0x1D170, 0x1D180), *range(0xE0000, 0xE0200))]
    flag = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    asked = [*(each for each in characters if not 0xD800 <= ord(each) <= 0xDFFF), f"a{flag}b", "a\r\nb"]
    shown = page.evaluate("async (texts) => texts.map((await import('/printable.js')).printable)", asked)
    assert shown == [printable(each) for each in asked]


def test_the_page_never_parses_markup_and_has_a_text_for_every_name() -> None:
    texts = set(re.findall(r'^  "?([\w.]+)"?: \[', (WEB / "i18n.js").read_text("utf-8"), re.MULTILINE))
    for script in sorted(WEB.rglob("*.js")):
        source = script.read_text("utf-8")
        parsing = r"(inner|outer|insertAdjacent)HTML|document\.write|\beval\b|DOMParser|setAttribute\(\"style"
        assert not re.search(parsing, source), script
        assert set(re.findall(r'\bt\("([\w.]+)"', source)) <= texts, script
    frame = (WEB / "index.html").read_text("utf-8")
    assert set(re.findall(r'data-(?:text|label)="(\w+)"', frame)) <= texts
    assert not re.search(r"<script(?! type=\"module\" src=\"/)|<style|style=|https?://", frame)


def test_steps_of_searches_and_answers_have_a_japanese_name() -> None:
    sources = [path.read_text("utf-8") for path in (PROJECT / "rag_assets" / "query").rglob("*.py")]
    operations = {name for source in sources for name in re.findall(r'trace\.add\(\s*"(\w+)"', source)}
    assert len(operations) > 20
    texts = (WEB / "i18n.js").read_text("utf-8")
    assert {name for name in operations if f'"operation.{name}": [' not in texts} == set()


def test_what_the_server_says_is_japanese_for_who_reads_that(browser: "Browser", server: RunningServer) -> None:
    visitor = Visitor(browser, server.url, locale="ja-JP").with_token()
    page = visitor.open("/evaluation")
    page.get_by_role("row").filter(has_text="vector").get_by_role("link").click()
    page.get_by_role("heading", level=2, name="失敗の内訳").wait_for()
    shown = page.get_by_role("main").inner_text()
    for words in ("正答", "誤答", "言語モデルなし", "10,000 字未満", "2 問中 1 問は選択に使用されています"):
        assert words in shown
    assert not re.search(r"\b(correct|wrong|refused|invented|none|extractive|characters)\b", shown)
    visitor.open("/documents/specs/notes/hostile.md")
    assert re.search(r"\d バイト", page.get_by_role("main").inner_text())
    visitor.open("/")
    visitor.page.get_by_label("質問文").fill("トークンの有効期限は？")
    page.keyboard.press("Enter")
    page.locator(".answer[aria-busy=false]").wait_for()
    page.get_by_text("処理の内訳").click()
    assert page.get_by_role("rowheader", name="意味検索").first.is_visible()
    assert visitor.errors == []
    visitor.open("/documents/none.md")
    page.get_by_text("この文書はありません。").wait_for()
    visitor.context.close()


def test_japanese_is_spoken_to_who_prefers_it_and_can_be_chosen(browser: "Browser", server: RunningServer) -> None:
    visitor = Visitor(browser, server.url, locale="ja-JP").with_token()
    page = visitor.open("/documents")
    assert page.locator("html").get_attribute("lang") == "ja"
    page.get_by_role("navigation", name="メイン").get_by_role("link", name="質問").click()
    page.get_by_label("質問文").fill("zzqx wwvk")
    page.keyboard.press("Enter")
    page.get_by_text("言い切れる記載はありません").wait_for()
    page.get_by_label("言語").select_option("en")
    page.get_by_text("No passage surely answers").wait_for()
    page.reload()
    page.get_by_role("heading", name="Ask the documents").wait_for()
    visitor.context.close()
    assert visitor.errors == []


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_narrow_screens_scroll_down_only_and_all_is_named_and_legible(
    browser: "Browser", server: RunningServer, colours: str
) -> None:
    visitor = Visitor(browser, server.url, viewport={"width": 360, "height": 740}, color_scheme=colours).with_token()
    page = visitor.page

    def check() -> None:
        assert page.evaluate(FAULTS) == [], page.url

    for address in VIEWS:
        visitor.open(address)
        check()
    page.get_by_role("link", name="Communities").click()
    page.locator("main .card a").first.click()
    page.locator("svg.graph").wait_for()
    check()
    visitor.open("/")
    visitor.ask("トークンの有効期限は？")
    page.get_by_text("Options", exact=True).click()
    page.get_by_text("What was done").click()
    check()
    visitor.context.close()


def test_a_question_is_asked_and_its_source_opened_with_the_keyboard_alone(visitor: Visitor) -> None:
    page = visitor.open("/")
    assert page.evaluate("document.activeElement.id") == "question"
    page.keyboard.insert_text("トークンの有効期限は？")
    page.keyboard.press("Enter")
    page.locator(".cite").first.wait_for()

    def tab_to(selector: str) -> None:
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none"
                return
        raise AssertionError(f"{selector} is not reached")

    tab_to(".cite")
    page.keyboard.press("Enter")
    tab_to(".card a")
    page.keyboard.press("Enter")
    page.locator("[aria-current=location]").first.wait_for()
    assert page.evaluate("document.activeElement.matches('[aria-current=location]')")
    page.goto("/documents")
    page.locator("main h1").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
