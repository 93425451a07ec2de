"""Documents, pages and pictures over HTTP; the web page's files."""

import shutil
import struct
import time
import zlib
from pathlib import Path

import httpx
import numpy as np
import pytest
from api_server import MakeClient, RunningServer
from click.testing import CliRunner

from rag_assets.cli import main
from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag, Usage
from rag_assets.models.accounts.ledger import Entry
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings
from rag_assets.query.contents.contents import Contents
from rag_assets.query.contents.page_images import PageImages

SAMPLE = Path(__file__).parents[3] / "docs" / "sample"

DESIGN = "sample/設計書/システム機能設計書(Webサービス)_B10103_顧客登録.xlsx"
PDF = "sample/reports/pesticides_industry_sales_1994-95.pdf"


def test_documents_are_listed_in_parts(api: httpx.Client) -> None:
    found: list[str] = []
    cursor = None
    while True:
        part = api.get("/documents", params={"limit": 4, **({"cursor": cursor} if cursor else {})}).json()
        found += [document["document_id"] for document in part["items"]]
        cursor = part["next_cursor"]
        if cursor is None:
            break
    assert len(found) == part["total"] == 9
    assert found == sorted(found)


def test_documents_are_found_by_words_folder_and_format(api: httpx.Client) -> None:
    def found(**wanted: str) -> list[str]:
        return [each["document_id"] for each in api.get("/documents", params=wanted).json()["items"]]

    assert found(text="ｗｅｂ 顧客") == [DESIGN]
    assert all(name.startswith("sample/設計書/") for name in found(folder="sample/設計書/"))
    assert len(found(folder="sample/設計書")) == 3
    refused = api.get("/documents", params={"folder": "sample/設計"})
    assert refused.status_code == 400
    assert "no document has folder sample/設計; did you mean sample/設計書" in refused.json()["detail"]
    assert len(found(format="pdf")) == 2
    assert found(status="failed") == []


@pytest.mark.parametrize("cursor", ["!", "a", "8J+YgA", "__", "AAAA", ""])
def test_a_cursor_that_no_list_gave_is_a_fault_of_the_caller(api: httpx.Client, cursor: str) -> None:
    assert api.get("/entities", params={"cursor": cursor}).status_code == 400
    refused = api.get("/documents", params={"cursor": cursor})
    assert refused.status_code == 400
    assert "cursor" in refused.json()["detail"]


@pytest.mark.parametrize("encoded", [DESIGN, DESIGN.replace("/", "%2F")])
def test_a_document_is_told_with_its_pages(api: httpx.Client, encoded: str) -> None:
    document = api.get(f"/documents/{encoded}").json()
    assert document["entry"]["document_id"] == DESIGN
    assert [page["page_number"] for page in document["pages"]] == [1, 2, 3, 4, 5, 6, 7]
    assert document["pages"][5]["page_name"] == "2. B10103（顧客登録）"
    assert document["summary"]
    assert document["chunk_count"] > 5
    assert "uri" not in str(document)


def test_a_document_with_a_line_break_in_its_name_is_told(
    tmp_path: Path, models_folder: Path, make_client: MakeClient
) -> None:
    files, home = tmp_path / "files", tmp_path / "home"
    for folder in (files, home):
        folder.mkdir()
    (home / "models").symlink_to(models_folder)
    (files / "a\nb.md").write_text("text", "utf-8")
    assert CliRunner().invoke(main, ["--home", str(home), "index", str(files)]).exit_code == 0
    client = make_client(Home(load_settings(home=home)))
    assert client.get("/api/v1/documents/files/a%0Ab.md").json()["entry"]["document_id"] == "files/a\nb.md"
    assert "text" in client.get("/api/v1/pages/files/a%0Ab.md/1").text
    assert client.get("/api/v1/pages/files/a%0Ab.md/1/image").json()["detail"].startswith("there is no picture")
    assert client.get("/api/v1/documents/files/a%0A.md").json()["detail"] == "there is no such document"
    for view in ("/documents/files/a%0Ab.md", "/pages/files/a%0Ab.md"):
        assert client.get(view).headers["content-type"].startswith("text/html")


def test_a_sheet_is_told_with_merged_cells_and_passages(api: httpx.Client) -> None:
    page = api.get(f"/pages/{DESIGN}/6").json()
    [table] = [block for block in page["blocks"] if block["cell_range"] == "D8:AH12"]
    assert table["header_row_count"] == 2
    top = {cell["text"]: (cell["column_span"], cell["row_span"]) for cell in table["rows"][0]["cells"]}
    assert top["DBアクセス種別"] == (5, 1)
    assert top["No."] == (1, 2)
    assert [cell["text"] for cell in table["rows"][1]["cells"]] == ["C", "R", "U", "D", "ﾛｯｸ対象"]
    assert {cell["text"] for cell in table["rows"][3]["cells"]} >= {"顧客", "テーブル", "○"}
    assert page["complete"] is True
    hit = api.get("/search", params={"q": "重複登録エラー", "filter": f"document={DESIGN}", "k": 1}).json()["hits"][0]
    cited = api.get(f"/pages/{DESIGN}/{hit['page_number']}").json()
    assert hit["chunk_id"] in {passage["chunk_id"] for passage in cited["passages"]}


def test_rows_that_are_cited_are_given_even_where_few_are_asked_for(api: httpx.Client) -> None:
    page = api.get(f"/pages/{DESIGN}/6", params={"row_limit": 0, "focus": "F52"}).json()
    assert page["complete"] is False
    [table] = [block for block in page["blocks"] if block["cell_range"] == "F48:AG52"]
    assert [row["row_index"] for row in table["rows"] if row["header"]] == [0, 1]
    assert "F52:AG52" in {row["cell_range"] for row in table["rows"]}


def test_a_focus_that_names_no_cells_is_refused(api: httpx.Client) -> None:
    refused = api.get(f"/pages/{DESIGN}/6", params={"focus": "foo"})
    assert refused.status_code == 422
    assert refused.json()["detail"] == "query.focus: expected cells as in B4:F20, found 'foo'"
    assert refused.json()["errors"] == [{"field": "query.focus", "message": "expected cells as in B4:F20, found 'foo'"}]
    assert api.get(f"/pages/{DESIGN}/6", params={"focus": ""}).status_code == 200


@pytest.mark.parametrize(
    "address",
    [
        *("/documents/nope", "/pages/nope/1", f"/pages/{DESIGN}/99", f"/pages/{DESIGN}/1/image"),
        *(f"/pages/{PDF}/9/image", "/entities/x", "/communities/x", "/reports/x"),
    ],
)
def test_what_is_not_there_is_404(api: httpx.Client, address: str) -> None:
    response = api.get(address)
    assert response.status_code == 404
    assert response.json()["title"] == "Not found"


def pixels(png: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    width, height = struct.unpack(">II", png[16:24])
    length = struct.unpack(">I", png[33:37])[0]
    lines = np.frombuffer(zlib.decompress(png[41 : 41 + length]), np.uint8).reshape(height, 1 + width * 3)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 3)


def test_a_pdf_page_is_a_picture_in_which_blocks_stand_where_their_boxes_say(api: httpx.Client) -> None:
    response = api.get(f"/pages/{PDF}/1/image", params={"width": 612})
    assert response.headers["content-type"] == "image/png"
    picture = pixels(response.content)
    page = api.get(f"/pages/{PDF}/1").json()
    assert picture.shape == (792, 612, 3)
    boxes = [block["box"] for block in page["blocks"] if block["box"]]
    assert boxes
    for left, top, right, bottom in boxes:
        assert picture[int(top) : int(bottom) + 1, int(left) : int(right) + 1].min() < 128  # ink
    assert picture[0, 0].tolist() == [255, 255, 255]


def test_a_picture_is_of_the_file_that_was_indexed_or_there_is_none(sample: Home, tmp_path: Path) -> None:
    files = shutil.copytree(SAMPLE, tmp_path / "files")
    snapshot = sample.snapshots.current()
    assert snapshot is not None
    place = Contents(sample.lake, snapshot).place(PDF)
    assert place is not None
    digest, path = place["content_sha256"], files / "reports" / Path(PDF).name
    images = PageImages(lambda: {"sample": str(files)})

    def drawn(uri: object, source_name: str = "sample", sha256: str = digest) -> bool:
        return images.draw(str(uri), source_name, sha256, 1, 200) is not None

    try:
        assert drawn(path)
        assert not drawn(place["uri"])  # it lies in no source any more
        assert not drawn(path, "other")
        assert not drawn(path, sha256="0" * 64)
        outside = shutil.copy(path, tmp_path / "outside.pdf")
        (files / "link.pdf").symlink_to(outside)
        assert not any(map(drawn, (outside, files / "link.pdf", f"{files}/../outside.pdf", "s3://bucket/x.pdf")))
        path.write_bytes(path.read_bytes() + b"\n% changed")
        assert not drawn(path)
        path.unlink()
        assert not drawn(path)
    finally:
        images.close()


def test_the_state_of_the_version_is_told(api: httpx.Client, server: RunningServer) -> None:
    state = api.get("/status").json()
    assert (state["snapshot"], state["document_count"], state["failed_count"], state["graph"]) == (1, 9, 0, True)
    assert state["documents_by_format"] == {"xlsx": 5, "docx": 2, "pdf": 2}
    assert api.get("/costs").json() == []
    assert httpx.get(f"{server.url}/health").json() == {"status": "alive"}
    assert httpx.get(f"{server.url}/ready").json() == {"status": "ready", "snapshot": 1, "problem": None}


def test_nothing_indexed_is_told_and_does_not_end_the_server(tmp_path: Path, make_client: MakeClient) -> None:
    client = make_client(Home(load_settings(home=tmp_path)))
    assert client.get("/health").status_code == 200
    for address in ("/ready", "/api/v1/search?q=x", "/api/v1/documents"):
        response = client.get(address)
        assert response.status_code == 503
        assert "retry-after" in response.headers
        assert "nothing is indexed" in response.json()["detail"]


def test_costs_of_queries_are_told_before_the_next_index_run(
    sample_home: Path, tmp_path: Path, make_client: MakeClient
) -> None:
    shutil.copytree(sample_home, tmp_path / "home", symlinks=True)
    home = Home(load_settings(home=tmp_path / "home"))
    asked = Request("p", (Message("user", "q"),), 100, Tag("answers", "answer_from_passages"))
    paid = Completion(asked, Outcome.COMPLETED, "a", Usage(200, 30), 0.25, 1.0, time.time())
    home.ledger().keep("anthropic:m", [Entry(paid)])
    client = make_client(home)
    [cost] = client.get("/api/v1/costs").json()
    assert (cost["step"], cost["model"], cost["calls"], cost["cost_usd"]) == ("answer_from_passages", "m", 1, 0.25)
    assert client.get("/api/v1/status").json()["cost_usd"] == 0.25
    home.ledger().compact()
    assert client.get("/api/v1/costs").json() == [cost]
