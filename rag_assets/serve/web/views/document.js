/** A document: pages, what could not be read, what kind it is, what models cost for it. */

import { encoded, get } from "/api.js";
import { el, fill, link } from "/dom.js";
import { bytes, date, dollars, named, number, pageName, percent, t } from "/i18n.js";
import { folderAddress, pageAddress } from "/places.js";
import { scrolled } from "/traces.js";
import { says, stateOf } from "/views/documents.js";

export async function showDocument(view, [documentId], signal) {
  const document = await get(`/documents/${encoded(documentId)}`, {}, signal);
  const { entry } = document;
  fill(
    view,
    el(
      "p",
      { class: "trail" },
      link("/documents", {}, t("documents")),
      " › ",
      link(folderAddress(entry.folder), {}, entry.folder),
    ),
    el("h1", {}, entry.file_name),
    says(entry) && el("p", {}, entry.title),
    facts(document),
    document.summary && section(t("summary"), el("p", { class: "text" }, document.summary)),
    document.failures.length > 0 && section(t("failures"), failures(document)),
    section(t("pages"), document.pages.length ? pages(document) : el("p", {}, t("none"))),
    document.facets.length > 0 && section(t("facets"), facets(document.facets)),
    document.costs.length > 0 && section(t("costs"), costs(document.costs)),
  );
}

function section(title, ...contents) {
  return el("section", {}, el("h2", {}, title), contents);
}

function facts({ entry, chunk_count: passages, question_count: questions }) {
  const listed = [
    [t("state"), stateOf(entry)],
    [t("format"), entry.format],
    [t("size"), bytes(entry.size_bytes)],
    [t("modified"), date(entry.modified_at)],
    [t("pages"), number(entry.page_count)],
    [t("characters"), number(entry.length_chars)],
    [t("passages"), number(passages)],
    [t("questions"), number(questions)],
    [t("cost"), dollars(entry.cost_usd)],
  ];
  return el(
    "dl",
    { class: "facts" },
    listed.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
  );
}

function pages({ entry, pages: listed }) {
  const items = listed.map((page) => {
    const name = pageName(page);
    const remarks = [page.role && named("role", page.role), page.hidden && t("hidden")].filter(Boolean).join(", ");
    return el(
      "li",
      {},
      link(pageAddress(entry.document_id, page.page_number), {}, name),
      remarks && el("span", { class: "quiet" }, ` (${remarks})`),
      page.summary && el("p", { class: "quiet text" }, page.summary),
    );
  });
  return el("ol", { class: "pages" }, items);
}

function failures(document) {
  const items = document.failures.map((failure) => {
    const place = failure.page_number ? t("pageNumber", { n: failure.page_number }) : t("whole");
    return el(
      "li",
      {},
      el("strong", {}, `${place}: ${named("cause", failure.cause)}`),
      el("p", { class: "quiet text" }, failure.message),
    );
  });
  return el("ul", {}, items);
}

function facets(listed) {
  const items = listed.map((each) =>
    el(
      "li",
      {},
      `${each.facet}: ${each.value} (${percent(each.confidence)})`,
      each.evidence && el("p", { class: "quiet text" }, each.evidence),
    ),
  );
  return el("ul", {}, items);
}

function costs(listed) {
  const rows = listed.map((cost) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, cost.step),
      el("td", {}, cost.model),
      el("td", { class: "figure" }, number(cost.calls)),
      el("td", { class: "figure" }, `${number(cost.input_tokens)} / ${number(cost.output_tokens)}`),
      el("td", { class: "figure" }, dollars(cost.cost_usd)),
    ),
  );
  return scrolled(t("costs"), [t("step"), t("model"), t("calls"), t("tokens"), t("cost")], rows);
}
