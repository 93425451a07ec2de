/** A page of a document with the cited place marked: sheets as tables, PDF pages as pictures, all with their text. */

import { encoded, get } from "/api.js";
import { el, fill, link } from "/dom.js";
import { named, pageName, percent, t } from "/i18n.js";
import { notice } from "/notices.js";
import { documentAddress, pageAddress, placeOf } from "/places.js";
import { pagePicture } from "/picture.js";
import { go } from "/router.js";
import { select } from "/search_options.js";
import { blockNodes } from "/sheet.js";

const ALL_ROWS = 100_000;

export async function showPage(view, [documentId], signal) {
  const number = Math.max(1, Number.parseInt(new URLSearchParams(location.search).get("page") ?? "1", 10) || 1);
  const place = placeOf(location.hash);
  const path = `/pages/${encoded(documentId)}/${number}`;
  const focus = place.cells?.split(",")[0];
  const [page, document] = await Promise.all([
    get(path, { focus }, signal),
    get(`/documents/${encoded(documentId)}`, {}, signal),
  ]);
  const cited = citedOf(page, place);
  const isPdf = page.format === "pdf";
  const blocks = el("div", { class: "blocks" });
  const rest = el("div");

  function draw(shown) {
    fill(blocks, shown.blocks.length ? blockNodes(shown, cited) : notice(t("emptyPage")));
    fill(rest, !shown.complete && el("button", { type: "button", onclick: showAll }, t("showAllRows")));
  }
  async function showAll() {
    draw(await get(path, { row_limit: ALL_ROWS, focus }, signal));
    fill(rest); // each table tells of rows that are still left out
    blocks.querySelector(".scroll")?.focus();
  }
  draw(page);
  const pictured = isPdf ? await pagePicture(page, place.box, signal) : null;
  fill(
    view,
    el(
      "p",
      { class: "trail" },
      link("/documents", {}, t("documents")),
      " › ",
      link(documentAddress(documentId), {}, page.title),
    ),
    el("h1", {}, page.kind === "body" ? (page.page_name ?? page.title) : pageName(page)),
    facts(page),
    pageLinks(page, document.pages),
    citedLine(place, cited, view, pictured, blocks),
    pictured,
    isPdf ? el("details", { open: true }, el("summary", {}, t("pageText")), blocks) : blocks,
    rest,
  );
  return () => lead(view);
}

/** What is cited, with the blocks of the passage where neither cells nor a box are named. */
function citedOf(page, place) {
  const passage = page.passages.find((each) => each.chunk_id === place.passage);
  return { areas: place.areas, box: place.box, blocks: new Set(passage?.block_indexes ?? []) };
}

/** Go to the first cited place. */
function lead(view) {
  const first = view.querySelector(".cited");
  if (!first) return;
  first.tabIndex = -1;
  first.scrollIntoView({ block: "center", inline: "nearest" });
  first.focus({ preventScroll: true });
}

function citedLine(place, cited, view, pictured, blocks) {
  if (!place.cells && !place.box && !place.passage) return null;
  const found = blocks.querySelector(".cited") || pictured?.querySelector(".cited");
  if (!found) return el("p", { class: "notice" }, t("citedMissing"));
  return el("p", { class: "notice" }, place.cells ? t("citedCells", { cells: place.cells }) : t("citedPlace"));
}

function facts(page) {
  const told = [
    page.page_name && t("pageOf", { n: page.page_number, count: page.page_count }),
    page.role && named("role", page.role),
    page.hidden && t("hidden"),
    page.ocr_confidence !== null && t("ocr", { share: percent(page.ocr_confidence) }),
  ].filter(Boolean);
  return [
    told.length > 0 && el("p", { class: "quiet" }, told.join(" · ")),
    page.summary && el("details", {}, el("summary", {}, t("summary")), el("p", { class: "text" }, page.summary)),
  ];
}

function pageLinks(page, pages) {
  if (page.page_count < 2) return null;
  const at = pages.findIndex((each) => each.page_number === page.page_number);
  const to = (other, text, rel) =>
    other && link(pageAddress(page.document_id, other.page_number), { rel, class: "button" }, text);
  const names = pages.map((each) => [String(each.page_number), pageName(each)]);
  const chooser = select("go-to-page", names, String(page.page_number), (value) =>
    go(pageAddress(page.document_id, value)),
  );
  return el(
    "nav",
    { class: "row pages", "aria-label": t("pageNavigation") },
    to(pages[at - 1], t("previousPage"), "prev"),
    el("label", {}, el("span", { class: "unseen" }, t("goToPage")), chooser),
    to(pages[at + 1], t("nextPage"), "next"),
  );
}
