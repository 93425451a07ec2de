/** The dialog that asks for the API token. */

import { keptToken } from "/session.js";

let token = keptToken.get();
let asking = null;

/** The token that requests show, or null. */
export function currentToken() {
  return token;
}

/**
 * Ask for the token, saying whether the one before was wrong; resolves to whether one was given. Callers at the same
 * time share one dialog.
 */
export function askForToken(wrong) {
  asking ??= shown(wrong).finally(() => {
    asking = null;
  });
  return asking;
}

function shown(wrong) {
  const dialog = document.getElementById("token-dialog");
  const field = document.getElementById("token-field");
  document.getElementById("token-wrong").hidden = !wrong;
  field.setAttribute("aria-invalid", String(wrong));
  field.value = token ?? "";
  dialog.returnValue = "cancel";
  dialog.showModal();
  field.focus();
  return new Promise((resolve) => {
    dialog.addEventListener(
      "close",
      () => {
        const given = dialog.returnValue === "save";
        if (given) {
          token = field.value.trim() || null;
          keptToken.set(token);
        }
        field.value = "";
        resolve(given && token !== null);
      },
      { once: true },
    );
  });
}
