/** Addresses of the page's views, and the place in a page that an address names. */

import { encoded } from "/api.js";
import { parseAreas } from "/cells.js";

/** Address of a page of a document. */
export function pageAddress(documentId, pageNumber, place = "") {
  return `/pages/${encoded(documentId)}?page=${pageNumber}${place ? `#${place}` : ""}`;
}

export const documentAddress = (documentId) => `/documents/${encoded(documentId)}`;
export const folderAddress = (folder) => `/documents?${new URLSearchParams({ folder })}`;
export const communityAddress = (communityId) => `/communities/${encodeURIComponent(communityId)}`;

/** Address of where a hit stands. */
export function hitAddress(hit) {
  const given = hit.citation.link;
  return given?.startsWith("/pages/") ? given : pageAddress(hit.document_id, hit.page_number);
}

/** `{cells, areas, box, passage}` of what stands behind the hash: `cells=B4:F20`, `box=l,t,r,b`, `passage=ID`. */
export function placeOf(hash) {
  const named = new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B"));
  const edges = (named.get("box") ?? "").split(",").map(Number);
  return {
    cells: named.get("cells"),
    areas: parseAreas(named.get("cells")),
    box: edges.length === 4 && edges.every(Number.isFinite) ? edges : null,
    passage: named.get("passage"),
  };
}
