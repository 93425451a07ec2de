/** Communities of the entity graph by level. */

import { get } from "/api.js";
import { status } from "/about.js";
import { el, fill, link } from "/dom.js";
import { number, t } from "/i18n.js";
import { notice } from "/notices.js";
import { communityAddress } from "/places.js";
import { go } from "/router.js";
import { field, select } from "/search_options.js";

const PART = 50;

export async function showCommunities(view, _, signal) {
  if (!(await status()).graph) {
    fill(view, el("h1", {}, t("communities")), notice(t("noGraph")));
    return;
  }
  const level = Number(new URLSearchParams(location.search).get("level") ?? 0) || 0;
  const [known, first] = await Promise.all([levels(signal), part(level, null, signal)]);
  const list = el("ul", { class: "cards small" });
  const more = el("p");
  function add(listed) {
    list.append(...listed.items.map(card));
    const next = async () => add(await part(level, listed.next_cursor, signal));
    fill(more, listed.next_cursor && el("button", { type: "button", onclick: next }, t("more")));
  }
  add(first);
  const names = known.map(([at, count]) => [
    String(at),
    `${t(at ? "levelName" : "coarsest", { n: at })} (${number(count)})`,
  ]);
  const chooser = select("level", names, String(level), (value) => go(`/communities?level=${value}`));
  fill(
    view,
    el("h1", {}, t("communities")),
    el("div", { class: "row" }, field("level", t("level"), chooser)),
    list,
    more,
  );
}

const part = (level, cursor, signal) => get("/communities", { level, limit: PART, cursor }, signal);

/** Levels with the number of their communities. */
async function levels(signal) {
  const found = [];
  while (true) {
    const { total } = await get("/communities", { level: found.length, limit: 1 }, signal);
    if (!total) return found;
    found.push([found.length, total]);
  }
}

/** Name of a community: title of its report, or its id. */
export function nameOf(community) {
  return community.title ?? t("communityNamed", { id: community.community_id.slice(0, 8) });
}

/** A community in a list. */
export function card(community) {
  const facts = [t("communityFacts", { size: number(community.size), edges: number(community.relationship_count) })];
  if (community.rating !== null) facts.push(t("rating", { rating: number(community.rating, 1) }));
  return el(
    "li",
    { class: "card" },
    link(communityAddress(community.community_id), {}, nameOf(community)),
    el("p", { class: "quiet" }, facts.join(" · ")),
  );
}
