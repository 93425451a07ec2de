/** Cells of a sheet, as in `B4:F20`. */

const RANGE = /^\$?([A-Za-z]{1,3})\$?([0-9]{1,7})(?::\$?([A-Za-z]{1,3})\$?([0-9]{1,7}))?$/;

/** First and last row and column, from 1; null for anything else. */
export function parseArea(text) {
  const found = RANGE.exec((text ?? "").trim());
  if (!found) return null;
  const columns = [number(found[1]), number(found[3] ?? found[1])];
  const rows = [Number(found[2]), Number(found[4] ?? found[2])];
  return { top: Math.min(...rows), left: Math.min(...columns), bottom: Math.max(...rows), right: Math.max(...columns) };
}

/** Areas of a list that is parted by commas. */
export function parseAreas(text) {
  return (text ?? "").split(",").map(parseArea).filter(Boolean);
}

/** Whether a range has a cell in common with one of some areas. */
export function meets(range, areas) {
  const area = parseArea(range);
  return (
    area !== null &&
    areas.some(
      (other) =>
        area.top <= other.bottom && other.top <= area.bottom && area.left <= other.right && other.left <= area.right,
    )
  );
}

/** Number of the first row of a range, or null. */
export function firstRow(range) {
  return parseArea(range)?.top ?? null;
}

function number(letters) {
  return [...letters.toUpperCase()].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0);
}
