/** The same question in several modes, side by side, with what each did. */

import { post } from "/api.js";
import { modes } from "/about.js";
import { answerNodes } from "/answers.js";
import { el, fill } from "/dom.js";
import { hitList } from "/hits.js";
import { named, t } from "/i18n.js";
import { problemNotice, say } from "/notices.js";
import { filterFields } from "/search_options.js";
import { traceDetails } from "/traces.js";

const FEWEST = 2;
const MOST = 4;
const kept = { question: "", chosen: null, answers: false };

export async function showCompare(view, _, signal) {
  const [offered, narrowed] = await Promise.all([modes(), filterFields("compare")]);
  kept.chosen ??= new Set(["hybrid", "fulltext"].filter((name) => offered.modes.includes(name)));
  const box = el("input", { id: "compared", type: "search", required: true, maxlength: 20000, value: kept.question });
  const answers = el("input", { id: "with-answers", type: "checkbox", checked: kept.answers });
  const warning = el("p", { class: "warn", role: "alert", id: "compare-count" });
  const results = el("div", { class: "columns" });
  const checks = offered.modes.map((name) => modeCheck(name));

  function modeCheck(name) {
    const change = (event) => (event.target.checked ? kept.chosen.add(name) : kept.chosen.delete(name));
    const box = el("input", { type: "checkbox", id: `mode-${name}`, checked: kept.chosen.has(name), onchange: change });
    return el("div", { class: "check" }, box, el("label", { for: `mode-${name}` }, named("mode", name)));
  }
  async function compare(event) {
    event.preventDefault();
    kept.question = box.value.trim();
    kept.answers = answers.checked;
    const chosen = offered.modes.filter((name) => kept.chosen.has(name));
    const fits = chosen.length >= FEWEST && chosen.length <= MOST;
    warning.textContent = fits ? "" : t("compareCount");
    if (!fits || !kept.question) return;
    say(t("searching"));
    const columns = chosen.map((mode) => column(mode));
    fill(
      results,
      columns.map((each) => each.node),
    );
    const asked = { question: kept.question, answers: kept.answers, filters: narrowed.filters() };
    await Promise.all(columns.map((each) => each.run(asked, signal)));
    columns.forEach((each) => each.draw(columns));
    say(t("compareDone"));
  }

  const form = el(
    "form",
    { class: "ask", role: "search", onsubmit: compare },
    el("label", { for: "compared" }, t("question")),
    box,
    el(
      "fieldset",
      { "aria-describedby": "compare-count" },
      el("legend", {}, t("compareChoose")),
      el("div", { class: "checks" }, checks),
    ),
    warning,
    narrowed.node,
    el("div", { class: "check" }, answers, el("label", { for: "with-answers" }, t("withAnswers"))),
    el("p", { class: "row" }, el("button", { type: "submit", class: "primary" }, t("compare"))),
  );
  fill(view, el("h1", {}, t("compareTitle")), form, results);
}

/** One mode. */
function column(mode) {
  const node = el("section", { class: "column", "aria-label": mode });
  const state = { mode, node, found: null, problem: null, draw };

  state.run = async ({ question, answers, filters }, signal) => {
    draw([]);
    try {
      state.found = answers
        ? await post("/ask", { question, mode, filters }, signal)
        : await post("/search", { query: question, mode, filters }, signal);
    } catch (error) {
      state.problem = error;
    }
    draw([]);
  };
  function draw(columns) {
    fill(
      node,
      el("h2", {}, named("mode", mode)),
      state.problem ? problemNotice(state.problem) : contents(state, columns),
    );
  }
  return state;
}

function contents(state, columns) {
  if (!state.found) return el("p", { class: "quiet" }, t("searching"));
  const { trace, mode, hits } = state.found;
  const answer = hits ? null : answerNodes(state.found);
  return [
    traceDetails(trace, mode, true),
    answer && [answer.text, el("h3", {}, t("sources"))],
    passages(state).length
      ? hitList(passages(state), t(hits ? "results" : "sources"), (hit) => elsewhere(hit, state, columns))
      : el("p", {}, t("noResults")),
  ];
}

const passages = (state) =>
  state.found?.hits ?? state.found?.sources.toSorted((one, other) => one.rank - other.rank) ?? [];

/** Which other modes found the same passage. */
function elsewhere(hit, state, columns) {
  if (!columns.length) return null;
  const others = columns.filter(
    (each) => each !== state && passages(each).some((other) => other.chunk_id === hit.chunk_id),
  );
  return others.length ? t("alsoIn", { modes: others.map((each) => each.mode).join(", ") }) : t("onlyHere");
}
