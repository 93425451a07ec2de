/** A community: its report, its parts, its entities as a graph and as a list. */

import { get } from "/api.js";
import { el, fill, link } from "/dom.js";
import { graphView } from "/graph.js";
import { number, t } from "/i18n.js";
import { problemNotice } from "/notices.js";
import { communityAddress, pageAddress } from "/places.js";
import { card, nameOf } from "/views/communities.js";

const MOST_ENTITIES = 200;
const MOST_EDGES = 600;
const SHOWN = 20;

export async function showCommunity(view, [communityId], signal) {
  const limits = { members: MOST_ENTITIES, edges: MOST_EDGES };
  const community = await get(`/communities/${encodeURIComponent(communityId)}`, limits, signal);
  const { entry, members, edges, parts, report } = community;
  const panel = el("section", { class: "entity", "aria-label": t("entity"), "aria-live": "polite", tabindex: -1 });
  const graph = members.length > 1 ? graphView(members, edges, (id) => choose(id)) : null;

  async function choose(id, lead = false) {
    graph?.select(id);
    fill(panel, el("p", { class: "quiet" }, t("loading")));
    try {
      fill(panel, entityNodes(await get(`/entities/${encodeURIComponent(id)}`, {}, signal), choose, members));
    } catch (error) {
      if (error.name !== "AbortError")
        fill(
          panel,
          problemNotice(error, () => choose(id)),
        );
    }
    if (lead) panel.focus();
  }

  const shown =
    members.length < entry.size ? t("membersShown", { shown: members.length, n: number(entry.size) }) : t("members");
  fill(
    view,
    el(
      "p",
      { class: "trail" },
      link("/communities", {}, t("communities")),
      " › ",
      link(`/communities?level=${entry.level}`, {}, t("levelName", { n: entry.level })),
    ),
    el("h1", {}, nameOf(entry)),
    el(
      "p",
      { class: "quiet" },
      t("communityFacts", { size: number(entry.size), edges: number(entry.relationship_count) }),
    ),
    entry.parent_id && el("p", {}, link(communityAddress(entry.parent_id), {}, t("parent"))),
    el("section", {}, el("h2", {}, t("report")), report ? reportNodes(report) : el("p", {}, t("noReport"))),
    parts.length > 0 &&
      el("section", {}, el("h2", {}, t("parts")), el("ul", { class: "cards small" }, parts.map(card))),
    graph && el("section", {}, el("h2", {}, t("graph")), graph.node),
    panel,
    el("section", {}, el("h2", {}, shown), memberList(members, choose)),
  );
}

function reportNodes(report) {
  return [
    el("p", { class: "text" }, report.entry.summary),
    el(
      "p",
      { class: "quiet" },
      t("rating", { rating: number(report.entry.rating, 1) }),
      report.rating_explanation && `: ${report.rating_explanation}`,
    ),
    report.findings.length > 0 && [
      el("h3", {}, t("findings")),
      el(
        "ul",
        {},
        report.findings.map((each) =>
          el("li", {}, el("strong", {}, each.summary), el("p", { class: "text" }, each.explanation)),
        ),
      ),
    ],
  ];
}

function memberList(members, choose) {
  const items = members.map((each) =>
    el(
      "li",
      {},
      el("button", { type: "button", class: "plain", onclick: () => choose(each.entity_id, true) }, each.name),
      el("span", { class: "quiet" }, ` ${each.type} · ${t("mentions")}: ${number(each.mention_count)}`),
    ),
  );
  return el("ul", { class: "members" }, items);
}

function entityNodes(entity, choose, members) {
  const { entry } = entity;
  const here = new Set(members.map((each) => each.entity_id));
  const related = entity.relationships
    .slice(0, SHOWN)
    .map((each) =>
      el(
        "li",
        {},
        here.has(each.entity.entity_id)
          ? el(
              "button",
              { type: "button", class: "plain", onclick: () => choose(each.entity.entity_id, true) },
              each.entity.name,
            )
          : each.entity.name,
        each.description && el("span", { class: "quiet" }, ` ${each.description}`),
      ),
    );
  const pages = entity.pages.slice(0, SHOWN).map((each) => {
    const place = each.chunk_id ? `passage=${encodeURIComponent(each.chunk_id)}` : "";
    const label = `${each.document_id} › ${t("pageNumber", { n: each.page_number })}`;
    return el("li", {}, link(pageAddress(each.document_id, each.page_number, place), {}, label));
  });
  return [
    el("h2", {}, entry.name),
    el("p", { class: "quiet" }, `${entry.type} · ${t("mentions")}: ${number(entry.mention_count)}`),
    entity.aliases.length > 0 && el("p", {}, t("aliases", { names: entity.aliases.join(", ") })),
    entity.description && el("p", { class: "text" }, entity.description),
    related.length > 0 && [el("h3", {}, t("relationships")), el("ul", {}, related)],
    pages.length > 0 && [el("h3", {}, t("namedOn")), el("ul", {}, pages)],
  ];
}
