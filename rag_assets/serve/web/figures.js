/** Figures of recorded evaluations: means with their intervals, versions, and addresses of the views that show them. */

import { number, t } from "/i18n.js";

const FEW = 20; // questions below which an interval is too narrow

/** A mean with its 95 % interval; a star where it rests on few questions. */
export function interval(figure, digits = 2) {
  if (!figure) return "";
  const [mean, low, high] = [figure.mean, figure.low, figure.high].map((each) => number(each, digits));
  return `${mean} [${low}, ${high}]${figure.count < FEW ? "*" : ""}`;
}

/** The figure of a system by level, measure and group. */
export function figureOf(figures, system, level, measure, dimension = "all", group = "all") {
  return figures.find(
    (each) =>
      each.system === system &&
      each.level === level &&
      each.measure === measure &&
      each.dimension === dimension &&
      each.group === group,
  );
}

export const versionName = (system) =>
  system.version === null ? t("heldBack") : t("versionNumber", { n: system.version });

export const runAddress = (runId) => `/evaluation/${encodeURIComponent(runId)}`;

/** Address of a question with what came; sides are `RUN/SYSTEM`, none for all of the run. */
export function questionAddress(runId, questionId, sides = []) {
  const given = new URLSearchParams([["id", questionId], ...sides.map((each) => ["side", each])]);
  return `${runAddress(runId)}/question?${given}`;
}

/** Run and system of a side; names of systems may hold slashes. */
export function sideOf(text) {
  const at = text.indexOf("/");
  return { run: text.slice(0, at), system: text.slice(at + 1) };
}
