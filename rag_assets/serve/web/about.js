/** What the server says of itself, asked once: modes of search and the state of the published version. */

import { get } from "/api.js";
import { learnNames } from "/i18n.js";

const asked = new Map();

function once(path) {
  if (!asked.has(path)) {
    const answer = get(path);
    asked.set(path, answer);
    answer.catch(() => asked.delete(path));
  }
  return asked.get(path);
}

/** `{default_mode, default_ask_mode, k, modes, retrievers, preparing, labels}`; from then on modes have names. */
export async function modes() {
  const offered = await once("/modes");
  learnNames("mode", offered.labels);
  return offered;
}

/** State of the published version. */
export const status = () => once("/status");

/** Ask again the next time. */
export function forget() {
  asked.clear();
}
