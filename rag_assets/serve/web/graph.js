/** An interactive drawing of entities and relationships: move, zoom, drag, choose. A list beside it holds the same. */

import { el, svg } from "/dom.js";
import { layout } from "/graph_layout.js";
import { t } from "/i18n.js";

const UNIT = 95; // of the drawing, for the distance of neighbours
const NAMED = 25; // entities whose names are always shown
const NAME_CHARS = 18;

/**
 * The drawing.
 *
 * @param members entities, those of greatest rank first.
 * @param edges relationships between them.
 * @param choose called with the id of an entity that a person picks.
 */
export function graphView(members, edges, choose) {
  const order = new Map(members.map((each, at) => [each.entity_id, at]));
  const heaviest = Math.max(...edges.map((each) => each.weight), 1e-9);
  const kept = edges.filter((each) => order.has(each.source_id) && order.has(each.target_id));
  const pairs = kept.map((each) => [order.get(each.source_id), order.get(each.target_id), each.weight / heaviest]);
  const places = layout(members.length, pairs).map(({ x, y }) => ({ x: x * UNIT, y: y * UNIT }));
  const lines = pairs.map(([, , weight]) => svg("line", { class: "edge", "stroke-width": 1 + 3 * weight }));
  const nodes = members.map((each, at) => node(each, at));
  const label = t("graphLabel", { nodes: members.length, edges: kept.length });
  const drawing = svg(
    "svg",
    { class: "graph", role: "img", "aria-label": label, tabindex: 0 },
    svg("g", {}, lines),
    svg("g", {}, nodes),
  );
  const view = viewport(drawing, places);

  function node(entity, at) {
    const radius = 5 + 3 * Math.log2(1 + entity.degree);
    const short = entity.name.length > NAME_CHARS ? `${entity.name.slice(0, NAME_CHARS)}…` : entity.name;
    return svg(
      "g",
      { class: at < NAMED ? "node named" : "node", "data-entity": entity.entity_id },
      svg("title", {}, `${entity.name} (${entity.type})`),
      svg("circle", { r: radius }),
      svg("text", { y: -radius - 4 }, short),
    );
  }
  function redraw() {
    places.forEach(({ x, y }, at) => nodes[at].setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`));
    pairs.forEach(([one, other], at) => {
      const ends = { x1: places[one].x, y1: places[one].y, x2: places[other].x, y2: places[other].y };
      for (const [name, value] of Object.entries(ends)) lines[at].setAttribute(name, value.toFixed(1));
    });
  }
  function select(id) {
    const chosen = order.get(id);
    const near = new Set(pairs.flatMap(([one, other]) => (one === chosen ? [other] : other === chosen ? [one] : [])));
    nodes.forEach((each, at) => {
      each.classList.toggle("chosen", at === chosen);
      each.classList.toggle("near", near.has(at));
    });
    lines.forEach((each, at) => each.classList.toggle("near", pairs[at][0] === chosen || pairs[at][1] === chosen));
  }

  redraw();
  dragging(drawing, view, {
    nodeAt: (target) => order.get(target.closest("[data-entity]")?.getAttribute("data-entity")),
    moveNode(at, x, y) {
      places[at] = { x: places[at].x + x, y: places[at].y + y };
      redraw();
    },
    pick: (at) => choose(members[at].entity_id),
  });
  const button = (sign, name, action) =>
    el("button", { type: "button", "aria-label": name, title: name, onclick: action }, sign);
  const tools = el(
    "div",
    { class: "row graph-tools" },
    button("+", t("zoomIn"), () => view.zoom(0.8)),
    button("−", t("zoomOut"), () => view.zoom(1.25)),
    button("⤢", t("wholeGraph"), view.whole),
  );
  return {
    node: el("div", { class: "graph-frame" }, tools, drawing, el("p", { class: "quiet" }, t("graphHint"))),
    select,
  };
}

/** The part of the drawing that is seen. */
function viewport(drawing, places) {
  const margin = UNIT;
  let seen;
  const show = () =>
    drawing.setAttribute("viewBox", [seen.x, seen.y, seen.width, seen.height].map((each) => each.toFixed(1)).join(" "));
  const view = {
    whole() {
      const [xs, ys] = [places.map((each) => each.x), places.map((each) => each.y)];
      const [x, y] = [Math.min(...xs) - margin, Math.min(...ys) - margin];
      seen = { x, y, width: Math.max(...xs) + margin - x, height: Math.max(...ys) + margin - y };
      show();
    },
    zoom(factor) {
      const { width, height } = seen;
      seen = {
        x: seen.x + (width * (1 - factor)) / 2,
        y: seen.y + (height * (1 - factor)) / 2,
        width: width * factor,
        height: height * factor,
      };
      show();
    },
    move(x, y) {
      seen = { ...seen, x: seen.x + x, y: seen.y + y };
      show();
    },
    /** Units of the drawing for one pixel. */
    scale() {
      const size = drawing.getBoundingClientRect();
      return Math.max(seen.width / size.width, seen.height / size.height);
    },
  };
  view.whole();
  return view;
}

function dragging(drawing, view, { nodeAt, moveNode, pick }) {
  let held = null;
  drawing.addEventListener("pointerdown", (event) => {
    held = { at: nodeAt(event.target), moved: 0 };
    drawing.setPointerCapture(event.pointerId);
  });
  drawing.addEventListener("pointermove", (event) => {
    if (!held) return;
    const scale = view.scale();
    const [x, y] = [event.movementX * scale, event.movementY * scale];
    held.moved += Math.abs(event.movementX) + Math.abs(event.movementY);
    if (held.moved < 4) return;
    if (held.at === undefined) view.move(-x, -y);
    else moveNode(held.at, x, y);
  });
  drawing.addEventListener("pointerup", () => {
    if (held?.at !== undefined && held.moved < 4) pick(held.at);
    held = null;
  });
  drawing.addEventListener("pointercancel", () => (held = null));
  drawing.addEventListener("keydown", (event) => {
    const step = 40 * view.scale();
    const actions = {
      ArrowLeft: () => view.move(-step, 0),
      ArrowRight: () => view.move(step, 0),
      ArrowUp: () => view.move(0, -step),
      ArrowDown: () => view.move(0, step),
      "+": () => view.zoom(0.8),
      "-": () => view.zoom(1.25),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });
}
