/** Thumbs on an answer, each of which makes a draft question for a person to accept, and clicks on results. */

import { get, post } from "/api.js";
import { el, fill } from "/dom.js";
import { t } from "/i18n.js";
import { say } from "/notices.js";

const MOST_CITATIONS = 20;
const MOST_CHARS = 2_000;
const MOST_RESULTS = 100;
let enabled = null;

/** Whether the server takes either; asked once. */
async function taken() {
  enabled ??= get("/feedback").then((state) => state.enabled);
  try {
    return await enabled;
  } catch {
    enabled = null;
    return false;
  }
}

/**
 * Two buttons.
 *
 * @param question as asked.
 * @param answer as the API gives it.
 * @param history questions before it, the oldest first.
 */
export function thumbs(question, answer, history) {
  const node = el("div", { class: "thumbs row" });
  const told = el("span", { class: "quiet" });
  const buttons = [
    [true, "👍", t("answerIsRight")],
    [false, "👎", t("answerIsWrong")],
  ].map(([good, sign, name]) =>
    el("button", { type: "button", class: "thumb", "aria-label": name, title: name, onclick: () => send(good) }, sign),
  );
  async function send(good) {
    buttons.forEach((each) => (each.disabled = true));
    try {
      await post("/feedback", bodyOf(question, answer, history, good));
      buttons.forEach((each, at) => each.setAttribute("aria-pressed", String((at === 0) === good)));
      fill(told, t("thumbTaken"));
    } catch (error) {
      fill(told, error.message);
    }
    buttons.forEach((each) => (each.disabled = false));
    say(told.textContent);
  }
  taken().then((yes) => yes && fill(node, buttons, told));
  return node;
}

/**
 * Tell the server that a result was opened; where that fails, nobody is bothered.
 *
 * @param question as asked, without a conversation before it.
 * @param hits the results as they are shown.
 * @param at position of the result.
 */
export async function clicked(question, hits, at) {
  const [result, ...above] = hits.slice(0, at + 1).map((hit) => hit.chunk_id).reverse();
  if (question.length > MOST_CHARS || at > MOST_RESULTS || !(await taken())) return;
  await post("/clicks", { question, result, above: above.reverse() }).catch(() => {});
}

function bodyOf(question, answer, history, good) {
  const places = new Map(answer.sources.map((source) => [source.number, source.citation]));
  const cited = answer.sentences.flatMap((each) => each.citations).filter((each) => places.has(each.number));
  return {
    question: question.slice(0, MOST_CHARS),
    good,
    answered: answer.answered,
    answer: answer.sentences.map((each) => each.text).join(" ").slice(0, 10 * MOST_CHARS),
    citations: cited.slice(0, MOST_CITATIONS).map(({ number, quote }) => {
      const { document_id, page_number, page_name, cell_range } = places.get(number);
      return { document_id, page_number, page_name, cell_range, quote: quote.slice(0, MOST_CHARS) };
    }),
    history: history.slice(-MOST_CITATIONS).map((each) => each.slice(0, MOST_CHARS)),
  };
}
