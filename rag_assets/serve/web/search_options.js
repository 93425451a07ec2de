/** The choice of mode and filters; it is remembered while the page is open. */

import { get } from "/api.js";
import { modes, status } from "/about.js";
import { el, fill } from "/dom.js";
import { named, t } from "/i18n.js";

const chosen = { mode: null, retriever: null, k: null, granularity: "chunk", folder: "", format: "" };
let folders = null;

/** A select element whose options are `[value, text]`. */
export function select(id, options, value, change) {
  const made = options.map(([name, text]) => el("option", { value: name, selected: name === value }, text));
  return el("select", { id, onchange: (event) => change(event.target.value) }, made);
}

/** A label above what it labels. */
export function field(id, text, control, hint = null) {
  return el("div", { class: "field" }, el("label", { for: id }, text), control, hint && el("small", {}, hint));
}

/** Folders and formats to narrow a search to: `{node, filters()}`. */
export async function filterFields(prefix) {
  const state = await status();
  const formats = [
    ["", t("anyFormat")],
    ...Object.keys(state.documents_by_format)
      .sort()
      .map((name) => [name, name]),
  ];
  const known = [["", t("anyFolder")], ...(await knownFolders()).map((name) => [name, name])];
  const node = el(
    "fieldset",
    { class: "row" },
    el("legend", {}, t("filters")),
    field(
      `${prefix}-folder`,
      t("folder"),
      select(`${prefix}-folder`, known, chosen.folder, (value) => (chosen.folder = value)),
    ),
    field(
      `${prefix}-format`,
      t("format"),
      select(`${prefix}-format`, formats, chosen.format, (value) => (chosen.format = value)),
    ),
  );
  return { node, filters };
}

/** All options of a search: `{node, body()}`, where the body is what the API takes. */
export async function searchOptions() {
  const [offered, narrowed] = await Promise.all([modes(), filterFields("search")]);
  chosen.mode ??= offered.default_ask_mode.split("+")[0];
  chosen.retriever ??= offered.default_ask_mode.split("+")[1] ?? null;
  // modes with commas between them are fused; the settings may name such a one
  const names = (listed, chosen) => [...new Set([...listed, chosen])].map((name) => [name, named("mode", name)]);
  const then = el("div", { class: "field" });
  function drawThen() {
    const usual = offered.preparing[chosen.mode];
    then.hidden = !usual;
    if (!usual) return;
    const retriever = chosen.retriever ?? usual;
    const control = select(
      "retriever",
      names(offered.retrievers, retriever),
      retriever,
      (value) => (chosen.retriever = value),
    );
    fill(then, el("label", { for: "retriever" }, t("afterwards")), control);
  }
  drawThen();
  const mode = select("mode", names(offered.modes, chosen.mode), chosen.mode, (value) => {
    chosen.mode = value;
    drawThen();
  });
  const count = el("input", {
    id: "count",
    type: "number",
    min: 1,
    max: 100,
    value: chosen.k ?? offered.k,
    onchange: (event) => (chosen.k = Number(event.target.value) || null),
  });
  const units = ["chunk", "page", "document"].map((name) => [name, t(name)]);
  const unit = select("granularity", units, chosen.granularity, (value) => (chosen.granularity = value));
  const node = el(
    "div",
    { class: "options" },
    el(
      "div",
      { class: "row" },
      field("mode", t("mode"), mode),
      then,
      field("count", t("resultCount"), count),
      field("granularity", t("granularity"), unit, t("granularityHint")),
    ),
    narrowed.node,
  );
  return { node, body: () => body(offered) };
}

/** Options of a request for an answer. */
function body(offered) {
  const usual = offered.preparing[chosen.mode];
  const mode =
    usual && chosen.retriever && chosen.retriever !== usual ? `${chosen.mode}+${chosen.retriever}` : chosen.mode;
  return { mode, ...(chosen.k ? { k: chosen.k } : {}), filters: filters() };
}

/** What a result of a search is. */
export const granularity = () => chosen.granularity;

function filters() {
  return ["folder", "format"].filter((name) => chosen[name]).map((name) => `${name}=${chosen[name]}`);
}

/** Folders of the first documents, with those above them. */
export async function knownFolders() {
  if (folders) return folders;
  const { items } = await get("/documents", { limit: 500 });
  const found = new Set();
  for (const { folder } of items) {
    const parts = folder.split("/");
    parts.forEach((_, at) => found.add(parts.slice(0, at + 1).join("/")));
  }
  folders = [...found].filter(Boolean).sort();
  return folders;
}
