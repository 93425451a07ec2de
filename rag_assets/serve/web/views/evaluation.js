/** One recorded evaluation: figures by mode and kind, its questions, and what was expected and came of each. */

import { modes } from "/about.js";
import { get } from "/api.js";
import { el, fill, link } from "/dom.js";
import { figureOf, interval, questionAddress, runAddress, sideOf, versionName } from "/figures.js";
import { date, dollars, named, number, said, t } from "/i18n.js";
import { pageAddress } from "/places.js";
import { field, select } from "/search_options.js";
import { scrolled } from "/traces.js";

const PART = 100;
const LEVELS = ["passage", "page", "document"];
const DIMENSIONS = ["type", "language", "format", "length"];
const MEASURES = ["R@5", "All@5", "MRR@10", "nDCG@10"];
const ANSWER_MEASURES = ["correct", "right", "wrong", "refused", "invented", "cited passage"];

export async function showEvaluation(view, [runId], signal) {
  const { run, level, measure, figures, questions } = await get(
    `/evaluations/${encodeURIComponent(runId)}`,
    {},
    signal,
  );
  const judged = run.figures.map((each) => each.level).filter((each) => each !== "cost");
  const overviews = [...new Set([...LEVELS, "answer", ...judged])].map((each) => overview(run, each));
  const byKind = DIMENSIONS.flatMap((dimension) => [
    kinds(run, figures, dimension, level, measure),
    kinds(run, figures, dimension, "answer", "correct"),
  ]);
  fill(
    view,
    el("p", { class: "trail" }, link("/evaluation", {}, t("evaluation"))),
    el("h1", {}, `${run.question_set}, ${date(run.evaluated_at)}`),
    el("p", { class: "quiet" }, [named("madeBy", run.made_by), named("writer", run.language_model), t("intervals")].join(" · ")),
    run.warnings.length > 0 &&
      el(
        "ul",
        { class: "notice" },
        run.warnings.map((each) => el("li", {}, said(each))),
      ),
    overviews,
    el("h2", {}, t("whereItFails")),
    byKind,
    el("h2", {}, t("evaluatedQuestions", { n: number(questions.length) })),
    questionList(run, questions),
  );
}

/** Figures of all questions, a row a system. */
function overview(run, level) {
  const there = new Set(run.figures.filter((each) => each.level === level).map((each) => each.measure));
  const headline = LEVELS.includes(level) ? MEASURES : level === "answer" ? ANSWER_MEASURES : [...there];
  const measures = headline.filter((measure) => there.has(measure));
  if (!measures.length) return null;
  const rows = run.systems.map((each) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, each.system),
      el("td", {}, versionName(each)),
      measures.map((measure) =>
        el("td", { class: "figure" }, interval(figureOf(run.figures, each.system, level, measure))),
      ),
      el(
        "td",
        { class: "figure" },
        interval(figureOf(run.figures, each.system, "cost", `milliseconds ${level}`), 0),
      ),
      level === "answer" && el("td", { class: "figure" }, dollars(each.cost_usd)),
    ),
  );
  const heads = [t("system"), t("version"), ...measures.map((each) => named("measure", each)), t("milliseconds"), ...(level === "answer" ? [t("cost")] : [])];
  return [el("h2", {}, named("level", level)), scrolled(named("level", level), heads, rows)];
}

/** One measure by kind of question or document, a column a system. */
function kinds(run, figures, dimension, level, measure) {
  const of = figures.filter(
    (each) => each.dimension === dimension && each.level === level && each.measure === measure,
  );
  const groups = [...new Set(of.map((each) => each.group))].sort();
  if (groups.length < 2) return null;
  const rows = groups.map((group) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, named("group", group)),
      el("td", { class: "figure" }, number(Math.max(...of.filter((each) => each.group === group).map((each) => each.count)))),
      run.systems.map(({ system }) =>
        el("td", { class: "figure" }, interval(figureOf(of, system, level, measure, dimension, group))),
      ),
    ),
  );
  const name = `${named("level", level)}, ${named("measure", measure)}: ${named("dimension", dimension)}`;
  const heads = [named("dimension", dimension), t("questionCount"), ...run.systems.map((each) => each.system)];
  return [el("h3", {}, name), scrolled(name, heads, rows)];
}

/** The questions, those that did worst first, narrowed to a type. */
function questionList(run, questions) {
  const node = el("div");
  const state = { type: "", shown: PART };
  const types = [...new Set(questions.map((each) => each.type))].filter(Boolean).sort();
  const options = [["", t("anyType")], ...types.map((each) => [each, each])];
  const chooser = select("question-type", options, "", (value) => {
    Object.assign(state, { type: value, shown: PART });
    draw();
  });
  function draw() {
    const wanted = questions.filter((each) => !state.type || each.type === state.type);
    const more = () => {
      state.shown += PART;
      draw();
    };
    fill(
      node,
      scrolled(
        t("evaluatedQuestions", { n: number(wanted.length) }),
        [t("asked"), t("type"), ...run.systems.map((each) => each.system)],
        wanted.slice(0, state.shown).map((each) => questionRow(run, each)),
      ),
      wanted.length > state.shown && el("p", {}, el("button", { type: "button", onclick: more }, t("more"))),
    );
  }
  draw();
  return [el("div", { class: "row" }, field("question-type", t("type"), chooser)), node];
}

function questionRow(run, question) {
  const cells = run.systems.map(({ system }) => {
    const { value, outcome } = question.values.find((each) => each.system === system);
    const style = value === null ? "quiet" : value === 1 ? "good" : value === 0 ? "bad" : "";
    const words = [value === null ? "–" : number(value, 2), outcome && named("outcome", outcome)];
    return el("td", { class: `figure ${style}` }, words.filter(Boolean).join(", "));
  });
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, link(questionAddress(run.run_id, question.question_id), {}, question.question)),
    el("td", {}, question.type),
    cells,
  );
}

export async function showEvaluatedQuestion(view, [runId], signal) {
  const wanted = new URLSearchParams(location.search);
  const id = wanted.get("id") ?? "";
  const sides = wanted.getAll("side").map(sideOf);
  const runs = [...new Set([runId, ...sides.map((each) => each.run)])];
  const [, ...details] = await Promise.all([
    modes(), // their names
    ...runs.map((run) => get(`/evaluations/${encodeURIComponent(run)}/question`, { id }, signal)),
  ]);
  const question = details[0];
  const shown = sides.length
    ? sides.map((each) => details[runs.indexOf(each.run)].sides.find((side) => side.system === each.system))
    : question.sides;
  fill(
    view,
    el(
      "p",
      { class: "trail" },
      link("/evaluation", {}, t("evaluation")),
      " › ",
      link(runAddress(runId), {}, t("evaluationRun")),
    ),
    el("h1", {}, question.question),
    el("p", { class: "quiet" }, [id, question.type, question.language].filter(Boolean).join(" · ")),
    question.history.length > 0 && el("p", {}, t("askedBefore", { questions: question.history.join(" / ") })),
    expected(question),
    el("div", { class: "columns" }, shown.filter(Boolean).map(sideNode)),
  );
}

function expected(question) {
  if (!question.answerable) return el("p", {}, t("expectedNothing"));
  const rows = question.expected.map((each) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, each.document, each.place && ` › ${each.place}`),
      el("td", {}, each.quote),
      el("td", {}, each.alternative && t("orThis"), !each.indexed && el("span", { class: "bad" }, t("notIndexed"))),
    ),
  );
  const groups = question.answer_contains.map((group) => group.join(` ${t("or")} `));
  return [
    el("h2", {}, t("expected")),
    rows.length > 0 && scrolled(t("expected"), [t("place"), t("quote"), t("remark")], rows),
    groups.length > 0 && el("p", {}, t("rightAnswerHolds", { words: groups.join(` ${t("and")} `) })),
  ];
}

function sideNode(side) {
  const name = `${side.system}, ${versionName(side)}`;
  const results = side.results.map((each, at) =>
    el(
      "li",
      { class: "card" },
      el(
        "p",
        { class: "place" },
        el("span", { class: "number" }, String(at + 1)),
        " ",
        link(placeAddress(each), {}, each.place),
        each.relevant && el("span", { class: "good" }, ` ✓ ${t("holdsEvidence")}`),
      ),
      el("blockquote", { class: "passage" }, each.text),
    ),
  );
  const main = side.scores.filter(({ measure }) => [...MEASURES, ...ANSWER_MEASURES].includes(measure));
  return el(
    "section",
    { class: "column", "aria-label": name },
    el("h2", {}, name),
    el("p", { class: "quiet" }, named("mode", side.mode), ` · ${number(side.milliseconds, 0)} ${t("milliseconds")}`),
    side.answer !== null && [
      el("h3", {}, t("answer")),
      side.outcome && el("p", { class: outcomeStyle(side.outcome) }, named("outcome", side.outcome)),
      el("p", { class: "text" }, side.answer),
      side.failure && el("p", { class: "notice bad" }, t("modelFailed", { reason: side.failure })),
      side.citations.length > 0 && el("p", { class: "quiet" }, `${t("sources")}: ${side.citations.join("; ")}`),
    ],
    el("h3", {}, t("results")),
    results.length ? el("ol", { class: "cards" }, results) : el("p", {}, t("notSearched")),
    el(
      "details",
      {},
      el("summary", {}, t("values")),
      el(
        "ul",
        {},
        main.map((each) => el("li", {}, `${named("level", each.level)} ${named("measure", each.measure)}: ${number(each.value, 3)}`)),
      ),
    ),
  );
}

const outcomeStyle = (outcome) => (["right", "correct"].includes(outcome) ? "good" : "bad");

/** A passage on its page, as the version that is served now has it. */
function placeAddress(result) {
  const at = result.page_id.lastIndexOf("#");
  const passage = `passage=${encodeURIComponent(result.chunk_id)}`;
  return pageAddress(result.document_id, Number(result.page_id.slice(at + 1)) || 1, passage);
}
