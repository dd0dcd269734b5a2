/** Offsets of the API count bytes of UTF-8; texts of JavaScript count UTF-16 units. */

/** The number of bytes of a text in UTF-8. */
export function byteLength(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    // The two halves of a pair are four bytes together, and count one unit each already.
    bytes += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 1 : 2;
  }
  return bytes;
}

/** The text behind its first `bytes` bytes; `null` if a character begins before that place and ends behind it. */
export function behind(text: string, bytes: number): string | null {
  let [at, seen] = [0, 0];
  while (seen < bytes && at < text.length) {
    const code = text.codePointAt(at) ?? 0;
    seen += width(code);
    at += code > 0xffff ? 2 : 1;
  }
  return seen === bytes ? text.slice(at) : seen < bytes ? "" : null;
}

/**
 * The text behind its first `known` bytes, where the text stands for `bytes` bytes that were not all UTF-8. A
 * replacement character stands for one to three bytes, and the text does not say how many: they are shared out evenly.
 */
export function behindDamaged(text: string, bytes: number, known: number): string {
  if (known <= 0) return text;
  let replaced = 0;
  for (const letter of text) if (letter === "\ufffd") replaced++;
  const each = replaced > 0 ? (bytes - (byteLength(text) - 3 * replaced)) / replaced : 0;
  let [at, seen, damaged] = [0, 0, 0];
  while (at < text.length && seen < known) {
    const code = text.codePointAt(at) ?? 0;
    if (code === 0xfffd) {
      seen += Math.floor(each * (damaged + 1)) - Math.floor(each * damaged);
      damaged++;
    } else {
      seen += width(code);
    }
    at += code > 0xffff ? 2 : 1;
  }
  return text.slice(at);
}

function width(code: number): number {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}
