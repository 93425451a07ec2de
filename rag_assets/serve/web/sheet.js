/** Blocks of a page as headings, paragraphs, lists, tables with merged cells, diagrams and notes; cited places marked. */

import { firstRow, meets } from "/cells.js";
import { el } from "/dom.js";
import { t } from "/i18n.js";

const SHORT_CHARS = 8; // of the lines of a cell that are not broken
const LONG_CHARS = 60; // of a text that takes more than one width

/**
 * The blocks of a page.
 *
 * @param page as the API gives it.
 * @param cited what is cited: `{areas, box, blocks}`: areas of cells, a box in points, and indexes of blocks.
 */
export function blockNodes(page, cited) {
  const nodes = [];
  let list = null;
  for (const block of page.blocks) {
    if (block.kind === "list_item") {
      list ??= nodes[nodes.push(el("ul", { class: "items" })) - 1];
      list.append(marked(block, cited, el("li", { class: "text" }, block.text)));
      continue;
    }
    list = null;
    nodes.push(node(block, cited, page));
  }
  return nodes;
}

function node(block, cited, page) {
  if (block.kind === "table" && block.rows.length) return table(block, cited, page.kind === "sheet");
  return marked(block, cited, plain(block));
}

function plain(block) {
  switch (block.kind) {
    case "heading":
      return el(`h${Math.min(6, 2 + block.section.length)}`, { class: "text" }, block.text);
    case "diagram":
      return el(
        "figure",
        { class: "diagram" },
        el("figcaption", {}, t("diagram")),
        el("p", { class: "text" }, block.text),
      );
    case "note":
      return el(
        "div",
        { class: "note", role: "note", "aria-label": t("note") },
        el("p", { class: "text" }, block.text),
      );
    case "header":
      return el("p", { class: "text quiet", title: t("header") }, block.text);
    case "caption":
      return el("p", { class: "text caption" }, block.text);
    default:
      return el("p", { class: "text" }, block.text);
  }
}

function marked(block, cited, made) {
  return isCited(block, cited) ? mark(made) : made;
}

function mark(made) {
  made.classList.add("cited");
  made.setAttribute("aria-current", "location");
  return made;
}

function isCited(place, cited) {
  if (cited.areas.length) return meets(place.cell_range, cited.areas);
  if (cited.box) return within(place.box, cited.box);
  return cited.blocks.has(place.block_index);
}

/** Whether the middle of a box lies in another one. */
function within(box, outer) {
  if (!box) return false;
  const across = (box[0] + box[2]) / 2;
  const down = (box[1] + box[3]) / 2;
  return across >= outer[0] && across <= outer[2] && down >= outer[1] && down <= outer[3];
}

function table(block, cited, isSheet) {
  const numbered = isSheet && block.rows.every((row) => row.cell_range);
  const name = block.cell_range ? t("tableAt", { range: block.cell_range }) : t("table");
  const head = el("thead");
  const body = el("tbody");
  let next = 0;
  for (const row of block.rows) {
    const part = row.header ? head : body;
    if (row.row_index > next) part.append(gap(row.row_index - next, block, numbered));
    part.append(tableRow(row, block, cited, numbered));
    next = row.row_index + 1;
  }
  if (next < block.row_count) body.append(gap(block.row_count - next, block, numbered));
  const whole = !cited.areas.length && !cited.box && cited.blocks.has(block.block_index);
  const made = el(
    "table",
    { class: "cells" },
    el("caption", { class: "quiet" }, name),
    head.rows.length > 0 && head,
    body,
  );
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name }, whole ? mark(made) : made);
}

function gap(count, block, numbered) {
  return el(
    "tr",
    {},
    el("td", { class: "quiet", colspan: block.column_count + (numbered ? 1 : 0) }, t("rowsLeftOut", { n: count })),
  );
}

function tableRow(row, block, cited, numbered) {
  const cells = row.cells.map((cell) => tableCell(cell, row, cited));
  return el("tr", {}, numbered && el("td", { class: "row-number" }, String(firstRow(row.cell_range))), cells);
}

function lengthOf(text) {
  if (text.length > LONG_CHARS) return "long longer";
  return text.split("\n").some((line) => line.length > SHORT_CHARS) ? "long" : "short";
}

function tableCell(cell, row, cited) {
  const heading = row.header ? { scope: cell.column_span > 1 ? "colgroup" : "col" } : {};
  const made = el(
    row.header ? "th" : "td",
    {
      ...heading,
      colspan: cell.column_span > 1 ? cell.column_span : null,
      rowspan: cell.row_span > 1 ? cell.row_span : null,
      "data-cells": cell.cell_range,
      class: `text ${lengthOf(cell.text)}`,
    },
    cell.text,
  );
  // where the cell cannot be told, its row is marked
  const place = { cell_range: cell.cell_range ?? row.cell_range, box: row.box, block_index: null };
  return isCited(place, cited) ? mark(made) : made;
}
