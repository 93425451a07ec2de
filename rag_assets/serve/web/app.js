/** Starts the page: texts of the frame, language, token, views. */

import { forget, status } from "/about.js";
import { el, fill } from "/dom.js";
import { chooseLanguage, date, language, number, t } from "/i18n.js";
import { render, route, start } from "/router.js";
import { askForToken } from "/token.js";
import { showAsk } from "/views/ask.js";
import { showCommunities } from "/views/communities.js";
import { showCommunity } from "/views/community.js";
import { showCompare } from "/views/compare.js";
import { showDocument } from "/views/document.js";
import { showDocuments } from "/views/documents.js";
import { showEvaluatedQuestion, showEvaluation } from "/views/evaluation.js";
import { showEvaluationComparison, showEvaluations } from "/views/evaluations.js";
import { showPage } from "/views/page.js";

route(/^\/$/, showAsk);
route(/^\/compare$/, showCompare);
route(/^\/documents$/, showDocuments);
route(/^\/documents\/(.+)$/, showDocument);
route(/^\/communities$/, showCommunities);
route(/^\/communities\/([^/]+)$/, showCommunity);
route(/^\/evaluation$/, showEvaluations);
route(/^\/evaluation\/compare$/, showEvaluationComparison);
route(/^\/evaluation\/([^/]+)$/, showEvaluation);
route(/^\/evaluation\/([^/]+)\/question$/, showEvaluatedQuestion);
route(/^\/pages\/(.+)$/, showPage);

const chooser = document.getElementById("language");

function writeFrame() {
  document.documentElement.lang = language();
  chooser.value = language();
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = t(node.dataset.text);
  for (const node of document.querySelectorAll("[data-label]")) node.setAttribute("aria-label", t(node.dataset.label));
}

async function writeFooter() {
  const footer = document.getElementById("footer");
  try {
    const state = await status();
    const facts = { n: state.snapshot, time: date(state.published_at), documents: number(state.document_count) };
    fill(footer, el("p", {}, t("versionServed", facts)));
  } catch {
    fill(footer);
  }
}

chooser.addEventListener("change", () => {
  chooseLanguage(chooser.value);
  writeFrame();
  writeFooter();
  render(false);
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the hash names a place in a document
  document.getElementById("main").focus();
});
document.getElementById("token-button").addEventListener("click", async () => {
  if (await askForToken()) {
    forget();
    writeFooter();
    render(false);
  }
});

writeFrame();
start();
writeFooter();
