/** Recorded evaluations: the history, and two modes or versions side by side. */

import { get } from "/api.js";
import { el, fill, link } from "/dom.js";
import { figureOf, interval, questionAddress, runAddress, sideOf, versionName } from "/figures.js";
import { date, levelMeasure, named, number, t } from "/i18n.js";
import { notice } from "/notices.js";
import { go } from "/router.js";
import { scrolled } from "/traces.js";

const CHANGES_SHOWN = 200;

export async function showEvaluations(view, _, signal) {
  const runs = await get("/evaluations", { limit: 100 }, signal);
  if (!runs.length) {
    fill(view, el("h1", {}, t("evaluation")), notice(t("noEvaluations")), el("pre", {}, t("howToEvaluate")));
    return;
  }
  const chosen = new Set();
  const warning = el("p", { class: "warn", role: "alert" });
  const rows = runs.flatMap((run) => run.systems.map((system) => row(run, system, chosen)));
  function compare(event) {
    event.preventDefault();
    const [first, second] = chosen;
    if (chosen.size !== 2) warning.textContent = t("chooseTwo");
    else go(`/evaluation/compare?${new URLSearchParams({ first, second })}`);
  }
  const heads = [
    ...[t("chooseToCompare"), t("evaluated"), t("system"), t("version"), t("questionSet"), t("madeBy")],
    ...[t("questionCount"), levelMeasure("passage", "R@5"), t("answersRight")],
  ];
  fill(
    view,
    el("h1", {}, t("evaluation")),
    el("p", { class: "quiet" }, t("intervals")),
    el(
      "form",
      { onsubmit: compare },
      scrolled(t("evaluation"), heads, rows),
      warning,
      el("p", { class: "row" }, el("button", { type: "submit", class: "primary" }, t("compare"))),
    ),
  );
}

/** Level and measure of `answer cited passage`. */
function parts(name) {
  const at = name.indexOf(" ");
  return [name.slice(0, at), name.slice(at + 1)];
}

function row(run, system, chosen) {
  const side = `${run.run_id}/${system.system}`;
  const name = `${t("chooseToCompare")}: ${system.system}, ${date(run.evaluated_at)}`;
  const change = (event) => (event.target.checked ? chosen.add(side) : chosen.delete(side));
  return el(
    "tr",
    {},
    el("td", {}, el("input", { type: "checkbox", "aria-label": name, onchange: change })),
    el("th", { scope: "row" }, link(runAddress(run.run_id), {}, date(run.evaluated_at))),
    el("td", {}, system.system),
    el("td", {}, versionName(system)),
    el("td", {}, run.question_set, run.choosing_count > 0 && el("span", { class: "warn" }, ` ⚠ ${t("chosenOn")}`)),
    el("td", {}, named("madeBy", run.made_by)),
    el("td", { class: "figure" }, number(run.question_count)),
    el("td", { class: "figure" }, interval(figureOf(run.figures, system.system, "passage", "R@5"))),
    el("td", { class: "figure" }, interval(figureOf(run.figures, system.system, "answer", "correct"))),
  );
}

export async function showEvaluationComparison(view, _, signal) {
  const wanted = new URLSearchParams(location.search);
  const sides = ["first", "second"].map((each) => wanted.get(each) ?? "");
  const [one, other] = sides.map(sideOf);
  const [compared, ...details] = await Promise.all([
    get(
      `/evaluations/${encodeURIComponent(one.run)}/comparison`,
      { system: one.system, other_run: other.run, other_system: other.system },
      signal,
    ),
    ...[one, other].map((each) => get(`/evaluations/${encodeURIComponent(each.run)}`, {}, signal)),
  ]);
  const names = [one, other].map((each, at) => {
    const system = details[at].run.systems.find((known) => known.system === each.system);
    return `${each.system}, ${versionName(system)}, ${date(details[at].run.evaluated_at)}`;
  });
  const differences = compared.differences.map((each) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, levelMeasure(...parts(each.measure))),
      el("td", { class: "figure" }, interval({ ...each, mean: each.difference }, 3)),
      el("td", { class: "figure" }, number(each.p_holm, 3)),
      el("td", { class: "figure" }, `${number(each.wins)} / ${number(each.losses)}`),
      el("td", { class: "figure" }, number(each.count)),
    ),
  );
  const changes = compared.changes
    .slice(0, CHANGES_SHOWN)
    .map((each) =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }, link(questionAddress(one.run, each.question_id, sides), {}, each.question)),
        el("td", {}, levelMeasure(...parts(each.measure))),
        el("td", { class: "figure" }, number(each.first, 2)),
        el("td", { class: "figure" }, number(each.second, 2)),
      ),
    );
  fill(
    view,
    el("p", { class: "trail" }, link("/evaluation", {}, t("evaluation"))),
    el("h1", {}, t("evaluationsCompared")),
    el(
      "ol",
      {},
      names.map((each, at) => el("li", {}, link(runAddress([one, other][at].run), {}, each))),
    ),
    scrolled(
      t("differences"),
      [t("measure"), t("difference"), t("pHolm"), t("betterWorse"), t("questionCount")],
      differences,
    ),
    el("h2", {}, t("changedQuestions", { n: number(compared.changes.length) })),
    changes.length > 0 && scrolled(t("changed"), [t("asked"), t("measure"), "1", "2"], changes),
  );
}
