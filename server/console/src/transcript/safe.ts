/**
 * Text of strangers, made harmless before it enters the model: its only control characters are `\n` and `\t`, nothing
 * in it turns the order in which it reads, and nothing in it is invisible. The same rules as the terminal client's.
 */

/** The longest line of words: a notice, a reason, a name. In characters. */
const MOST_WORDS = 400;

/** Sequences for a terminal: control sequences, strings such as titles, and short ones. A cut one ends with the text. */
const SEQUENCES =
  /(?:\x1b\[|\x9b)[ -?]{0,256}[@-~]?|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]{0,256}(?:\x07|\x9c|\x1b\\)?|\x1b[ -/]{0,8}[0-~]?/g;

/** Control characters but `\n` and `\t`, and those that turn the direction of text. */
const DRIVES = "\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069";

/** Letters that Unicode shows as nothing. Those that scripts and emoji need to join letters are not among them. */
const UNSEEN =
  "\\xad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180e\\u200b\\u2028\\u2029\\u2060-\\u2065\\u206a-\\u206f\\u3164" +
  "\\ufeff\\uffa0\\ufff0-\\ufffb\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}";

/** Letters that join others, or choose how others look. */
const JOINERS = "\\u200c\\u200d\\ufe00-\\ufe0f";

const harmful = new RegExp(`[${DRIVES}${UNSEEN}]`, "u");
const drives = new RegExp(`[${DRIVES}]`, "gu");
const unseen = new RegExp(`[${UNSEEN}]`, "gu");
const written = new RegExp(`[${DRIVES}${UNSEEN}${JOINERS}]`, "gu");
const odd = new RegExp(`[\\n\\t${DRIVES}${UNSEEN}]`, "u");
const writtenAny = new RegExp(written.source, "u");

/** A text whose sequences and invisible letters are left out; other control characters show as their pictures. */
export function text(from: string): string {
  if (!harmful.test(from)) return from;
  return from.replace(SEQUENCES, "").replace(/\r\n?/g, "\n").replace(unseen, "").replace(drives, picture);
}

/** A text on one line of at most 400 characters. */
export function line(from: string, longest = MOST_WORDS): string {
  if (from.length <= longest && !odd.test(from)) return from.trim();
  // Nothing behind this can be shown; a huge text is not worth a walk.
  const near = from.length > longest * 8 ? from.slice(0, longest * 8) : from;
  const one = text(near).trim().replace(/\n/g, "⏎").replace(/\t/g, " ");
  if (one.length <= longest) return one;
  return `${wholeCharacters(one, longest)}…`;
}

/** A text with each control character and invisible letter written out: all that a person has to judge is there. */
export function whole(from: string): string {
  if (!writtenAny.test(from)) return from;
  return from.replace(written, (letter) => {
    const code = letter.codePointAt(0) ?? 0;
    return code < 0x20 || code === 0x7f ? picture(letter) : writtenOut(code);
  });
}

/** The beginning of a text, at most this many UTF-16 units, which ends with a whole character. */
export function wholeCharacters(from: string, units: number): string {
  if (from.length <= units) return from;
  const last = from.charCodeAt(units - 1);
  return from.slice(0, last >= 0xd800 && last < 0xdc00 ? units - 1 : units);
}

function picture(letter: string): string {
  const code = letter.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? "\u2421" : "\ufffd";
}

function writtenOut(code: number): string {
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}
