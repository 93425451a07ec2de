/** Messages: what failed, what is empty, and what a screen reader is told. */

import { el, fill } from "/dom.js";
import { t } from "/i18n.js";

/** What failed, with a button to try again. */
export function problemNotice(error, again = null) {
  return el(
    "div",
    { class: "notice bad", role: "alert" },
    el("p", {}, error.message),
    again && el("button", { type: "button", onclick: again }, t("tryAgain")),
  );
}

/** A plain message. */
export function notice(text, ...more) {
  return el("div", { class: "notice" }, el("p", {}, text), ...more);
}

/** Tell a screen reader. */
export function say(text) {
  fill(document.getElementById("status"), text);
}
