/** Passages as cards: results of a search, and the numbered sources of an answer. */

import { el, fill, link } from "/dom.js";
import { number, t } from "/i18n.js";
import { hitAddress } from "/places.js";

const SHORT_CHARS = 280;

/**
 * A passage.
 *
 * @param hit as the API gives it.
 * @param options `number`: what it is called; `quotes`: words to mark, each `{quote, supported}`; `remark`: a line more;
 *   `opened`: told when its place is opened.
 */
export function hitCard(hit, options = {}) {
  const { number: called = hit.rank, quotes = [], remark = null, opened } = options;
  return el(
    "li",
    { class: "card", tabindex: -1, "data-number": called },
    el(
      "p",
      { class: "place" },
      el("span", { class: "number" }, String(called)),
      " ",
      link(hitAddress(hit), { onclick: opened }, hit.citation.label),
    ),
    passage(
      hit.text,
      quotes.filter((each) => each.supported).map((each) => each.quote),
    ),
    quotes.some((each) => !each.supported && !each.unchecked && each.quote) && el("p", { class: "warn" }, `⚠ ${t("quoteMissing")}`),
    hit.questions?.length > 0 && foundBy(hit.questions),
    remark && el("p", { class: "quiet" }, remark),
  );
}

const scoreOf = (hit) => t("score", { score: number(hit.score, 3) });

/** Result cards in their order; `opened` is told the position of a result whose place is opened. */
export function hitList(hits, label, remarkOf = scoreOf, opened = () => {}) {
  return el(
    "ol",
    { class: "cards", "aria-label": label },
    hits.map((hit, at) => hitCard(hit, { remark: remarkOf(hit), opened: () => opened(at) })),
  );
}

function foundBy(questions) {
  const items = questions.slice(0, 3).map((each) => el("li", {}, each.question));
  return el("div", { class: "quiet" }, el("p", {}, t("foundByQuestions")), el("ul", {}, items));
}

function passage(text, quotes) {
  const node = el("blockquote", { class: "passage" });
  if (text.length <= SHORT_CHARS) {
    return fill(node, marked(text, quotes));
  }
  const start = Math.max(
    0,
    Math.min(...quotes.map((quote) => text.indexOf(quote)).filter((at) => at >= 0), text.length) - 80,
  );
  const from = start >= text.length - 80 ? 0 : start;
  const short =
    (from ? "…" : "") + text.slice(from, from + SHORT_CHARS) + (from + SHORT_CHARS < text.length ? "…" : "");
  const shown = el("span", {}, marked(short, quotes));
  const button = el("button", { type: "button", class: "plain", "aria-expanded": "false" }, t("fullText"));
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    button.textContent = t(open ? "lessText" : "fullText");
    fill(shown, marked(open ? text : short, quotes));
  });
  node.append(shown, " ", button);
  return node;
}

/** Text with the first occurrence of each quote marked. */
function marked(text, quotes) {
  const spans = quotes
    .map((quote) => [text.indexOf(quote), quote.length])
    .filter(([at, length]) => at >= 0 && length > 0)
    .sort((one, other) => one[0] - other[0]);
  const parts = [];
  let done = 0;
  for (const [at, length] of spans) {
    if (at < done) continue;
    parts.push(text.slice(done, at), el("mark", {}, text.slice(at, at + length)));
    done = at + length;
  }
  return [...parts, text.slice(done)];
}
