/** Text of others as it may be shown: what reorders text, hides or is no character stands as an escape, as on a terminal. */

// the same as `rag_assets.text.plain` takes out, but flags of regions, which are shown
const UNSAFE =
  /\u{1f3f4}[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]{3,6}\u{e007f}|[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\u{1d173}-\u{1d17a}\u{e0000}-\u{e007f}]/gu;

/** Text of several lines in which what is not to be shown stands as escapes. */
export function printable(text) {
  return String(text).replaceAll("\r\n", "\n").replace(UNSAFE, escaped);
}

function escaped(character) {
  const code = character.codePointAt(0);
  if (code === 0x1f3f4) return character; // a flag
  if (code === 0x0d) return "\\r";
  const [sign, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${sign}${code.toString(16).padStart(digits, "0")}`;
}
