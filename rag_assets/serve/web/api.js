/** Requests to the HTTP API, and the events of an answer while it is written. */

import { said, t } from "/i18n.js";
import { askForToken, currentToken } from "/token.js";

const ROOT = "/api/v1";

/** A request that was refused or failed; its message is for people. */
export class ApiProblem extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Read JSON. Parameters that are empty are left out. */
export async function get(path, parameters = {}, signal = undefined) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return (await send(path + (query ? `?${query}` : ""), { signal })).json();
}

/** Send JSON and read JSON. */
export async function post(path, body, signal = undefined) {
  return (await send(path, posted(body, "application/json", signal))).json();
}

/** A picture as a local address; the caller revokes it. */
export async function picture(path, signal = undefined) {
  return URL.createObjectURL(await (await send(path, { signal })).blob());
}

/** Path of an id that may hold slashes. */
export function encoded(id) {
  return id.split("/").map(encodeURIComponent).join("/");
}

/**
 * Answer a question: yields `{name, data}` with the names `evidence`, `text` and, last, `answer`. Where the server or
 * something before it sends no events, the whole answer comes as JSON. A stream that breaks off is a problem, and not
 * asked for again by itself: the answer would be paid for twice.
 */
export async function* answer(body, signal) {
  const response = await send("/ask", posted(body, "text/event-stream", signal));
  if (response.headers.get("content-type")?.startsWith("text/event-stream") && response.body) {
    for await (const event of events(response.body)) {
      if (event.name === "error") throw new ApiProblem(event.data.status, said(event.data.detail));
      yield event;
      if (event.name === "answer") return;
    }
    throw new ApiProblem(0, t("brokeOff"));
  }
  yield { name: "answer", data: await response.json() };
}

/** Events of a stream of `text/event-stream`. */
export async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    while (true) {
      const { done, value } = await reader.read().catch((error) => {
        throw error.name === "AbortError" ? error : new ApiProblem(0, t("brokeOff"));
      });
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const event = parsed(part);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parsed(part) {
  let name = "message";
  const lines = [];
  for (const line of part.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) lines.push(line.slice(5).trimStart());
  }
  return lines.length ? { name, data: JSON.parse(lines.join("\n")) } : null;
}

function posted(body, accept, signal) {
  const headers = { "Content-Type": "application/json", Accept: accept };
  return { method: "POST", headers, body: JSON.stringify(body), signal };
}

async function send(path, options) {
  while (true) {
    const shown = currentToken();
    const headers = { ...options.headers, ...(shown ? { Authorization: `Bearer ${shown}` } : {}) };
    let response;
    try {
      response = await fetch(ROOT + path, { ...options, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiProblem(0, t("noConnection"));
    }
    if (response.ok) return response;
    if (response.status === 401 && (currentToken() !== shown || (await askForToken(shown !== null)))) continue;
    throw new ApiProblem(response.status, await told(response));
  }
}

async function told(response) {
  try {
    const problem = await response.json();
    return said(problem.detail || problem.title);
  } catch {
    return `HTTP ${response.status}`;
  }
}
