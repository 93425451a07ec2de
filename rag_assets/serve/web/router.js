/** Leads addresses to views without loading the page anew. */

import { el, fill } from "/dom.js";
import { t } from "/i18n.js";
import { problemNotice } from "/notices.js";

const routes = [];
let leaving = new AbortController();

/** Show a view for addresses that match a pattern; its groups are given to it, decoded. */
export function route(pattern, show) {
  routes.push({ pattern, show });
}

/** Go to an address of this page. */
export function go(address) {
  history.replaceState({ scrolled: window.scrollY }, "");
  history.pushState(null, "", address);
  return render(true);
}

/**
 * Show the view of the current address.
 *
 * @param moved whether it is another address than before, so that focus goes to its title.
 * @param scrolled how far down it was when it was left.
 */
export async function render(moved, scrolled = 0) {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const main = document.getElementById("main");
  markCurrent();
  const view = document.createElement("div");
  view.className = "view";
  try {
    const { show, found } = chosen();
    const ready = await show(view, found, signal);
    if (signal.aborted) return;
    place(main, view, moved, scrolled);
    if (!scrolled) ready?.();
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    place(
      main,
      fill(
        view,
        el("h1", {}, t("problem")),
        problemNotice(error, () => render(moved)),
      ),
      moved,
    );
  }
}

function place(main, view, moved, scrolled = 0) {
  fill(main, view);
  const title = view.querySelector("h1");
  document.title = title ? `${title.textContent} – rag_assets` : "rag_assets";
  if (!moved) return;
  window.scrollTo(0, scrolled);
  if (title) {
    title.tabIndex = -1;
    title.focus({ preventScroll: true });
  } else main.focus({ preventScroll: true });
}

function chosen() {
  for (const { pattern, show } of routes) {
    const found = pattern.exec(location.pathname);
    if (found) return { show, found: found.slice(1).map(decodeURIComponent) };
  }
  return { show: routes[0].show, found: [] };
}

function markCurrent() {
  const section = `/${location.pathname.split("/")[1]}`.replace("/pages", "/documents");
  for (const each of document.querySelectorAll("header nav a")) {
    if (each.getAttribute("href") === section) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
}

/** Follow links, the back button and changes of the hash. */
export function start() {
  document.addEventListener("click", (event) => {
    const anchor = event.target instanceof Element ? event.target.closest("a[href^='/']") : null;
    const other = event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
    if (!anchor || other || event.defaultPrevented || anchor.target) return;
    event.preventDefault();
    go(anchor.getAttribute("href"));
  });
  history.scrollRestoration = "manual";
  window.addEventListener("popstate", (event) => render(true, event.state?.scrolled ?? 0));
  return render(false);
}
