/**
 * Builds elements. Text of documents, answers and names only ever becomes text nodes: nothing here or elsewhere in
 * the page parses markup. What steers the direction of text in it, or hides, is shown as escapes.
 */

import { printable } from "/printable.js";

const SHOWN = new Set(["title", "aria-label", "alt", "placeholder"]); // attributes that people meet as text
const SVG = "http://www.w3.org/2000/svg";

/** An HTML element with attributes and children; functions under `on…` become listeners. */
export function el(tag, attributes = {}, ...children) {
  return built(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return built(document.createElementNS(SVG, tag), attributes, children);
}

/** Put children in the place of what an element holds. */
export function fill(node, ...children) {
  node.replaceChildren(...flat(children));
  return node;
}

/** A link within the page. */
export function link(address, attributes = {}, ...children) {
  if (!/^[/#]/.test(address) || address.startsWith("//")) throw new Error("an address of another site");
  return el("a", { href: address, ...attributes }, ...children);
}

function built(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : SHOWN.has(name) ? printable(value) : String(value));
  }
  node.append(...flat(children));
  return node;
}

function flat(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== undefined && child !== null && child !== false)
    .map((child) => (child instanceof Node ? child : printable(child)));
}
