/** An answer: sentences with the numbers of their sources, and the sources beside it. */

import { el } from "/dom.js";
import { t } from "/i18n.js";
import { hitCard } from "/hits.js";

/** The checked answer. */
export function answerNodes(answer) {
  const cited = new Set(answer.sentences.flatMap((each) => each.citations.map((citation) => citation.number)));
  const shown = answer.sources.filter((source) => cited.has(source.number));
  const list = el(
    "ol",
    { class: "cards", "aria-label": t("sources") },
    shown.map((source) => sourceCard(source, answer)),
  );
  return {
    text: [
      answer.failure && el("p", { class: "notice bad" }, t("modelFailed", { reason: answer.failure })),
      !answer.answered && el("p", { class: "notice" }, t(reasonOf(answer))),
      !answer.answered && answer.sentences.length > 0 && !answer.model && el("h4", {}, t("nearest")),
      notes(answer).map((each) => el("p", { class: "quiet" }, each)),
      answer.sentences.length > 0 && sentences(answer, list),
      answer.removed_citations > 0 &&
        el("p", { class: "warn" }, t("removedCitations", { n: answer.removed_citations })),
      (answer.answered || (answer.model && answer.sentences.length > 0)) &&
        el("p", { class: "quiet" }, answer.model ? t("writtenBy", { model: answer.model }) : t("quoted")),
    ],
    sources: shown.length ? list : null,
    count: shown.length,
  };
}

/** What stands above quotes beside the usual words: words that were sought by others, files that could not be read. */
function notes(answer) {
  return answer.model ? [] : answer.answer.split("\n- ", 1)[0].split("\n").slice(0, -1);
}

/** Why a question counts as not answered. */
function reasonOf(answer) {
  if (!answer.sentences.length) return "notInDocuments";
  return answer.model ? "notConfirmed" : "notSure";
}

function sentences(answer, list) {
  const labels = new Map(answer.sources.map((source) => [source.number, source.citation.label]));
  const items = answer.sentences.map((sentence) => sentenceNode(sentence, labels, list));
  return answer.model
    ? el(
        "div",
        { class: "prose" },
        items.map((each) => el("p", {}, each)),
      )
    : el(
        "ul",
        { class: "quotes" },
        items.map((each) => el("li", {}, each)),
      );
}

function sentenceNode(sentence, labels, list) {
  const numbers = [...new Set(sentence.citations.map((citation) => citation.number))];
  const doubtful = !sentence.supported;
  return [
    el("span", { class: doubtful ? "doubtful" : "said" }, sentence.text),
    numbers.map((each) => [" ", citation(each, labels.get(each) ?? "", list)]),
    doubtful && el("span", { class: "warn" }, ` ⚠ ${t(sentence.unchecked ? "unchecked" : "unsupported")}`),
    sentence.unfounded?.length > 0 &&
      el("span", { class: "warn" }, ` ⚠ ${t("unfounded", { words: sentence.unfounded.join(", ") })}`),
  ];
}

function citation(number, label, list) {
  const name = t("cites", { n: number, label });
  const lead = () => {
    const card = list.querySelector(`[data-number="${number}"]`);
    card?.scrollIntoView({ block: "nearest" });
    card?.focus({ preventScroll: true });
  };
  return el(
    "button",
    { type: "button", class: "cite", "aria-label": name, title: label, onclick: lead },
    `[${number}]`,
  );
}

function sourceCard(source, answer) {
  const quotes = answer.sentences.flatMap((each) =>
    each.citations.filter((citation) => citation.number === source.number),
  );
  return hitCard(source, { number: source.number, quotes });
}
