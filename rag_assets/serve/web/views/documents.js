/** The documents with state, pages, size and cost, by folder, words and state. */

import { get } from "/api.js";
import { status } from "/about.js";
import { el, fill, link } from "/dom.js";
import { bytes, date, dollars, named, number, t } from "/i18n.js";
import { documentAddress, folderAddress } from "/places.js";
import { go } from "/router.js";
import { field, knownFolders, select } from "/search_options.js";

const FIELDS = ["text", "folder", "format", "status"];
const PART = 50;

export async function showDocuments(view, _, signal) {
  const asked = new URLSearchParams(location.search);
  const wanted = Object.fromEntries(FIELDS.map((name) => [name, asked.get(name) ?? ""]));
  const [state, folders, listed] = await Promise.all([
    status(),
    knownFolders(),
    get("/documents", { ...wanted, limit: PART, cursor: asked.get("cursor") }, signal),
  ]);
  fill(
    view,
    el("h1", {}, t("documents")),
    el("p", { class: "quiet" }, totals(state)),
    filterForm(wanted, state, folders),
    el("h2", {}, t("documentsFound", { n: number(listed.total) })),
    listed.items.length ? table(listed.items) : el("p", { class: "notice" }, t("noDocuments")),
    parts(wanted, asked.get("cursor"), listed.next_cursor),
  );
}

function totals(state) {
  const causes = Object.entries(state.failed_by_cause).map(
    ([cause, count]) => `${named("cause", cause)} ${number(count)}`,
  );
  return [
    t("documentsFound", { n: number(state.document_count) }),
    t("documentsFailed", { n: number(state.failed_count) }) + (causes.length ? ` (${causes.join(", ")})` : ""),
    state.partly_read_count > 0 && t("documentsPartlyRead", { n: number(state.partly_read_count) }),
    `${t("pages")}: ${number(state.page_count)}`,
    `${t("cost")}: ${dollars(state.cost_usd)}`,
  ]
    .filter(Boolean)
    .join(" · ");
}

function filterForm(wanted, state, folders) {
  const values = { ...wanted };
  const choose = (name) => (value) => (values[name] = value);
  const known = folders.includes(wanted.folder) || !wanted.folder ? folders : [wanted.folder, ...folders];
  const words = el("input", {
    id: "text",
    type: "search",
    maxlength: 1000,
    value: wanted.text,
    onchange: (event) => (values.text = event.target.value),
  });
  const submitted = (event) => {
    event.preventDefault();
    values.text = words.value;
    go(addressOf(values));
  };
  const formats = Object.keys(state.documents_by_format).sort();
  return el(
    "form",
    { class: "row", role: "search", onsubmit: submitted },
    field("text", t("words"), words),
    field(
      "folder",
      t("folder"),
      select("folder", [["", t("anyFolder")], ...known.map((name) => [name, name])], wanted.folder, choose("folder")),
    ),
    field(
      "format",
      t("format"),
      select("format", [["", t("anyFormat")], ...formats.map((name) => [name, name])], wanted.format, choose("format")),
    ),
    field(
      "status",
      t("state"),
      select(
        "status",
        [
          ["", t("anyState")],
          ["parsed", t("parsed")],
          ["failed", t("failed")],
        ],
        wanted.status,
        choose("status"),
      ),
    ),
    el("button", { type: "submit", class: "primary" }, t("show")),
  );
}

function addressOf(values, cursor = "") {
  const given = Object.entries({ ...values, cursor }).filter(([, value]) => value);
  return `/documents${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

function parts(wanted, here, next) {
  return el(
    "p",
    { class: "row" },
    here && link(addressOf(wanted), { class: "button" }, t("firstDocuments")),
    next && link(addressOf(wanted, next), { class: "button", rel: "next" }, t("nextDocuments")),
  );
}

/** A table that becomes cards on a narrow screen; roles are stated because that takes them from the elements. */
function table(items) {
  const heads = [t("name"), t("folder"), t("state"), t("format"), t("pages"), t("size"), t("modified"), t("cost")];
  return el(
    "table",
    { class: "cards-if-narrow", role: "table", "aria-label": t("documents") },
    el(
      "thead",
      { role: "rowgroup" },
      el(
        "tr",
        { role: "row" },
        heads.map((head) => el("th", { role: "columnheader", scope: "col" }, head)),
      ),
    ),
    el(
      "tbody",
      { role: "rowgroup" },
      items.map((each) => row(each, heads)),
    ),
  );
}

function row(document, heads) {
  const cells = [
    null,
    link(folderAddress(document.folder), {}, document.folder),
    stateOf(document),
    document.format,
    number(document.page_count),
    bytes(document.size_bytes),
    date(document.modified_at),
    dollars(document.cost_usd),
  ];
  const name = link(documentAddress(document.document_id), {}, document.file_name);
  const title = says(document) && el("span", { class: "quiet" }, document.title);
  return el(
    "tr",
    { role: "row" },
    el("th", { role: "rowheader", scope: "row" }, name, title && [el("br"), title]),
    cells.slice(1).map((cell, at) => el("td", { role: "cell", "data-head": heads[at + 1] }, el("span", {}, cell))),
  );
}

/** Whether the title of a document says more than its name. */
export function says(document) {
  return !document.file_name.startsWith(document.title);
}

/** State of a document with the cause of its failure. */
export function stateOf(document) {
  const cause = document.failure_cause && named("cause", document.failure_cause);
  if (document.status === "failed")
    return el("span", { class: "state bad" }, `✗ ${t("failed")}${cause ? `: ${cause}` : ""}`);
  if (document.failure_count)
    return el("span", { class: "state warn" }, `⚠ ${t("partly", { n: document.failure_count })} (${cause})`);
  return el("span", { class: "state good" }, `✓ ${t("parsed")}`);
}
