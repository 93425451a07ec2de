/** What a search or an answer did: steps, calls of models, time and cost. */

import { el } from "/dom.js";
import { dollars, named, number, t } from "/i18n.js";

/** One line: time, model calls, cost. */
function traceTotal(trace) {
  return t("traceTotal", {
    milliseconds: number(trace.milliseconds, 1),
    calls: trace.calls?.length ?? 0,
    cost: dollars(trace.cost_usd ?? 0),
  });
}

/** All of it, folded away unless it is to be open, with the mode, which the mode `auto` has chosen. */
export function traceDetails(trace, mode, open = false) {
  return el(
    "details",
    { class: "trace", open },
    el("summary", {}, t("trace"), " ", el("span", { class: "quiet" }, named("mode", mode), " · ", traceTotal(trace))),
    steps(trace.steps),
    trace.calls?.length > 0 && calls(trace.calls),
  );
}

function steps(listed) {
  const rows = listed.map((step) => {
    const texts = [step.filter, ...(step.texts ?? [])].filter(Boolean);
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, named("operation", step.operation)),
      el("td", {}, step.index ? named("index", step.index) : ""),
      el("td", { class: "figure" }, number(step.candidates)),
      el("td", { class: "figure" }, number(step.milliseconds, 1)),
      el("td", {}, texts.join("; "), step.scores?.length > 0 && scores(step.scores)),
    );
  });
  return scrolled(t("steps"), [t("step"), t("index"), t("candidates"), t("milliseconds"), t("details")], rows);
}

/** Passages with their scores before and after a step; before it, a passage may have had one in each of several lists. */
function scores(listed) {
  const shown = (value) => (value === null || value === undefined ? "–" : number(value, 4));
  const rows = listed.map((each) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, each.chunk_id),
      el("td", { class: "figure" }, each.lists ? each.lists.map(shown).join(" / ") : shown(each.before)),
      el("td", { class: "figure" }, shown(each.after)),
    ),
  );
  const table = scrolled(t("scores"), [t("passage"), t("before"), t("after")], rows);
  return el("details", {}, el("summary", {}, t("scores")), table);
}

function calls(listed) {
  const rows = listed.map((call) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, call.step),
      el(
        "td",
        {},
        `${call.model}${call.cached ? ` (${t("fromStore")})` : ""}${call.outcome === "completed" ? "" : `, ${call.outcome}`}`,
      ),
      el(
        "td",
        { class: "figure" },
        `${number(call.input_tokens + call.cached_tokens)} / ${number(call.output_tokens)}`,
      ),
      el("td", { class: "figure" }, dollars(call.cost_usd)),
      el("td", { class: "figure" }, number(call.seconds, 2)),
    ),
  );
  return scrolled(t("modelCalls"), [t("step"), t("model"), t("tokens"), t("cost"), t("seconds")], rows);
}

/** A table that scrolls within itself where there is little room. */
export function scrolled(name, heads, rows) {
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": name },
    el(
      "table",
      { class: "figures" },
      el("caption", { class: "unseen" }, name),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          heads.map((head) => el("th", { scope: "col" }, head)),
        ),
      ),
      el("tbody", {}, rows),
    ),
  );
}
