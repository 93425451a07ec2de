/** The picture of a PDF page with the cited box drawn over it. */

import { encoded, picture } from "/api.js";
import { el } from "/dom.js";
import { t } from "/i18n.js";

const WIDTH_PIXELS = 1400;

/** The picture with its box; a line that says why there is none where there is none. */
export async function pagePicture(page, box, signal) {
  let address;
  try {
    address = await picture(
      `/pages/${encoded(page.document_id)}/${page.page_number}/image?width=${WIDTH_PIXELS}`,
      signal,
    );
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return el("p", { class: "quiet" }, t("noPicture", { reason: error.message }));
  }
  const image = el("img", { src: address, alt: t("pictureOf", { n: page.page_number }) });
  signal.addEventListener("abort", () => URL.revokeObjectURL(address));
  const frame = el("div", { class: "picture" }, image);
  if (box && page.width_points && page.height_points) frame.append(drawn(box, page));
  // so that the place to scroll to does not move afterwards
  await image.decode().catch(() => {});
  return el("figure", { class: "page-picture" }, frame);
}

function drawn([left, top, right, bottom], page) {
  const made = el("div", { class: "box cited", role: "img", "aria-label": t("citedBox"), "aria-current": "location" });
  made.style.left = `${(100 * left) / page.width_points}%`;
  made.style.top = `${(100 * top) / page.height_points}%`;
  made.style.width = `${(100 * (right - left)) / page.width_points}%`;
  made.style.height = `${(100 * (bottom - top)) / page.height_points}%`;
  return made;
}
