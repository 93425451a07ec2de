/** Questions, answers while they are written, and searches; the conversation stays while the page is open. */

import { answer, post } from "/api.js";
import { answerNodes } from "/answers.js";
import { el, fill } from "/dom.js";
import { clicked, thumbs } from "/feedback.js";
import { hitList } from "/hits.js";
import { t } from "/i18n.js";
import { problemNotice, say } from "/notices.js";
import { granularity, searchOptions } from "/search_options.js";
import { traceDetails } from "/traces.js";

const HISTORY_TURNS = 10;
const turns = [];
let draft = "";

export async function showAsk(view) {
  const log = el("section", { class: "turns", "aria-label": t("conversation") });
  const box = el("textarea", {
    id: "question",
    rows: 2,
    required: true,
    maxlength: 20000,
    "aria-describedby": "question-hint",
  });
  const holder = el("div");
  const details = el("details", { class: "folded" }, el("summary", {}, t("options")), holder);
  let body = () => ({});
  const offer = async () => {
    try {
      const options = await searchOptions();
      body = options.body;
      fill(holder, options.node);
    } catch (error) {
      fill(holder, problemNotice(error, offer));
    }
  };
  const fresh = el("button", { type: "button", onclick: forgetAll }, t("newConversation"));
  const hint = el("p", { class: "quiet" }, t("followUp"));

  function forgetAll() {
    turns.forEach((turn) => turn.stop?.abort());
    turns.length = 0;
    redraw();
    box.focus();
  }
  function redraw() {
    fill(
      log,
      turns.map((turn) => turn.article),
    );
    fresh.hidden = hint.hidden = turns.length === 0;
  }
  async function begin(run) {
    const question = box.value.trim();
    if (!question) return box.focus();
    const turn = newTurn(question);
    const earlier = history();
    turn.earlier = earlier.map((each) => each.question);
    turns.unshift(turn);
    box.value = draft = "";
    redraw();
    await run(turn, { ...body(), history: earlier });
  }

  const form = el(
    "form",
    { class: "ask", role: "search", onsubmit: submitted },
    el("label", { for: "question" }, t("question")),
    box,
    el("p", { id: "question-hint", class: "quiet" }, t("questionHint")),
    el(
      "p",
      { class: "row" },
      el("button", { type: "submit", class: "primary" }, t("ask")),
      el("button", { type: "submit", value: "search" }, t("searchOnly")),
      fresh,
    ),
    details,
  );
  function submitted(event) {
    event.preventDefault();
    begin(event.submitter?.value === "search" ? search : ask);
  }
  box.addEventListener("keydown", (event) => {
    // while Japanese text is being converted, Enter ends the conversion
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    begin(ask);
  });

  box.value = draft;
  box.addEventListener("input", () => (draft = box.value));
  turns.forEach(draw);
  redraw();
  fill(view, el("h1", {}, t("askTitle")), form, hint, log);
  offer();
  return () => turns.length || box.focus();
}

function history() {
  const answered = turns
    .filter((turn) => turn.answer)
    .slice(0, HISTORY_TURNS)
    .reverse();
  return answered.map((turn) => ({ question: turn.question, answer: turn.answer.answer }));
}

async function ask(turn, body) {
  await attempt(
    turn,
    () => ask(turn, body),
    async () => {
      for await (const { name, data } of answer({ question: turn.question, ...body }, turn.stop.signal)) {
        if (name === "evidence") {
          turn.evidence = data.hits;
          turn.text = "";
          draw(turn);
          say(t("writing", { n: data.hits.length }));
        } else if (name === "text") {
          turn.text = (turn.text ?? "") + data.text;
          if (turn.live) fill(turn.live, turn.text);
          else draw(turn);
        } else if (name === "answer") turn.answer = data;
      }
      say(t("answerReady", { n: answerNodes(turn.answer).count }));
    },
  );
}

async function search(turn, body) {
  await attempt(
    turn,
    () => search(turn, body),
    async () => {
      turn.found = await post(
        "/search",
        { query: turn.question, granularity: granularity(), ...body },
        turn.stop.signal,
      );
      say(t("resultsReady", { n: turn.found.hits.length }));
    },
  );
}

/** Run a turn, with what becomes of it drawn before and after. */
async function attempt(turn, again, run) {
  Object.assign(turn, { busy: true, problem: null, again, text: null, evidence: null, stop: new AbortController() });
  draw(turn);
  say(t("searching"));
  try {
    await run();
  } catch (error) {
    turn.problem = error.name === "AbortError" ? { message: t("stopped") } : error;
  }
  turn.busy = false;
  draw(turn);
}

/** A question with the elements that hold what becomes of it; what is said live has to stay the same element. */
function newTurn(question) {
  const [said, beside, trace] = [
    el("div", { class: "answer", "aria-live": "polite" }),
    el("aside", { class: "sources" }),
    el("div"),
  ];
  const asked = el("h2", { class: "asked" }, question);
  const article = el(
    "article",
    { class: "turn" },
    asked,
    el("div", { class: "said-and-sources" }, said, beside),
    trace,
  );
  return { question, stop: null, article, said, beside, trace };
}

/** Write a turn as it stands now. */
function draw(turn) {
  turn.live = null;
  turn.said.setAttribute("aria-busy", String(Boolean(turn.busy)));
  const [said, beside, done] = turn.found ? foundParts(turn) : turn.answer ? answerParts(turn) : waitingParts(turn);
  fill(turn.said, said);
  turn.beside.hidden = !beside;
  turn.beside.setAttribute("aria-label", t("sources"));
  fill(turn.beside, beside && [el("h3", {}, t("sources")), beside]);
  fill(turn.trace, done && traceDetails(done.trace, done.mode));
}

function foundParts(turn) {
  const { hits } = turn.found;
  const opened = turn.earlier.length ? undefined : (at) => clicked(turn.question, hits, at);
  const list = () => hitList(hits, t("results"), undefined, opened);
  return [
    [el("h3", {}, t("results")), hits.length ? list() : el("p", {}, t("noResults"))],
    null,
    turn.found,
  ];
}

function answerParts(turn) {
  const { text, sources } = answerNodes(turn.answer);
  turn.thumbs ??= thumbs(turn.question, turn.answer, turn.earlier);
  return [[el("h3", {}, t("answer")), text, turn.thumbs], sources, turn.answer];
}

function waitingParts(turn) {
  if (turn.problem) return [problemNotice(turn.problem, () => turn.again()), null, null];
  const state = turn.evidence ? t("writing", { n: turn.evidence.length }) : t("searching");
  turn.live = el("p", { class: "live" }, turn.text ?? "");
  const stop = el("button", { type: "button", onclick: () => turn.stop.abort() }, t("stop"));
  const said = [el("h3", {}, t("answer")), el("p", { class: "quiet" }, state), turn.live, el("p", {}, stop)];
  return [said, turn.evidence?.length > 0 && hitList(turn.evidence.slice(0, 6), t("sources"), () => null), null];
}
