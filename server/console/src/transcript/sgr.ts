/** The styles that programs choose (ECMA-48, SGR), as class names of the console's style sheet. */

/** The 16 colours, by their class names without `ansi-` or `ansi-on-`. */
export const COLOURS = [
  "black",
  "red",
  "green",
  "yellow",
  "blue",
  "magenta",
  "cyan",
  "white",
  "bright-black",
  "bright-red",
  "bright-green",
  "bright-yellow",
  "bright-blue",
  "bright-magenta",
  "bright-cyan",
  "bright-white",
] as const;

// A style is one number: the colour plus 1 in bits 0 to 4, that of the ground in bits 5 to 9, and these.
const FLAGS = { bold: 1 << 10, dim: 1 << 11, italic: 1 << 12, underline: 1 << 13, inverse: 1 << 14, strike: 1 << 15 };
const COLOUR = 0b11111;

/** The usual red, green and blue of the 16 colours, as xterm has them, to find the nearest one. */
const THEME = [
  [0, 0, 0],
  [205, 0, 0],
  [0, 205, 0],
  [205, 205, 0],
  [0, 0, 238],
  [205, 0, 205],
  [0, 205, 205],
  [229, 229, 229],
  [127, 127, 127],
  [255, 0, 0],
  [0, 255, 0],
  [255, 255, 0],
  [92, 92, 255],
  [255, 0, 255],
  [0, 255, 255],
  [255, 255, 255],
] as const;

/** The steps of red, green and blue in the cube of 216 colours. */
const CUBE = [0, 95, 135, 175, 215, 255];

const names = new Map<number, string>();

/** The class names of a style: `ansi-COLOUR`, `ansi-on-COLOUR`, `ansi-bold` and so on; empty for the plain style. */
export function classesOf(style: number): string {
  const known = names.get(style);
  if (known !== undefined) return known;
  const of = [];
  const [colour, ground] = [style & COLOUR, (style >> 5) & COLOUR];
  if (colour) of.push(`ansi-${COLOURS[colour - 1]}`);
  if (ground) of.push(`ansi-on-${COLOURS[ground - 1]}`);
  for (const [name, flag] of Object.entries(FLAGS)) if (style & flag) of.push(`ansi-${name}`);
  const classes = of.join(" ");
  // There are 2^16 styles at most; a hostile output must not fill the memory with them.
  if (names.size < 4096) names.set(style, classes);
  return classes;
}

/** The style after the parameters of one sequence, such as `1;31`. */
export function styled(style: number, parameters: string): number {
  const groups = parameters.split(";");
  for (let at = 0; at < groups.length; at++) {
    const group = groups[at] ?? "";
    // Parts that colons join belong together: `38:5:208`.
    const parts = group.split(":").map(number);
    const code = parts[0] ?? 0;
    if (code === 38 || code === 48) {
      const joined = parts.length > 1;
      const kind = joined ? parts[1] : number(groups[at + 1]);
      const size = kind === 5 ? 1 : kind === 2 ? 3 : 0;
      const from = groups.slice(at + 2, at + 2 + size).map(number);
      // A number for the colour space may stand before red, green and blue.
      const rest = joined ? parts.slice(2).slice(-size) : from;
      if (!joined) at += 1 + size;
      style = coloured(style, code === 48, rest.length === size ? colour(kind, rest) : null);
    } else if (code === 4) {
      style = parts[1] === 0 ? style & ~FLAGS.underline : style | FLAGS.underline;
    } else {
      style = simple(style, code);
    }
  }
  return style;
}

function simple(style: number, code: number): number {
  if (code === 0) return 0;
  if (code === 1) return style | FLAGS.bold;
  if (code === 2) return style | FLAGS.dim;
  if (code === 3) return style | FLAGS.italic;
  if (code === 7) return style | FLAGS.inverse;
  if (code === 9) return style | FLAGS.strike;
  if (code === 21) return style | FLAGS.underline;
  if (code === 22) return style & ~(FLAGS.bold | FLAGS.dim);
  if (code === 23) return style & ~FLAGS.italic;
  if (code === 24) return style & ~FLAGS.underline;
  if (code === 27) return style & ~FLAGS.inverse;
  if (code === 29) return style & ~FLAGS.strike;
  if (code >= 30 && code <= 37) return coloured(style, false, code - 30);
  if (code >= 40 && code <= 47) return coloured(style, true, code - 40);
  if (code >= 90 && code <= 97) return coloured(style, false, code - 82);
  if (code >= 100 && code <= 107) return coloured(style, true, code - 92);
  if (code === 39) return style & ~COLOUR;
  if (code === 49) return style & ~(COLOUR << 5);
  return style;
}

function coloured(style: number, ground: boolean, index: number | null): number {
  if (index === null) return style;
  return ground ? (style & ~(COLOUR << 5)) | ((index + 1) << 5) : (style & ~COLOUR) | (index + 1);
}

/** The nearest of the 16 colours to one of 256 (kind 5), or to red, green and blue (kind 2). */
function colour(kind: number | undefined, rest: readonly number[]): number | null {
  const [first = 0, second = 0, third = 0] = rest;
  if (kind === 2) return nearest(first, second, third);
  if (kind !== 5 || first > 255) return null;
  if (first < 16) return first;
  if (first >= 232) return nearest(8 + (first - 232) * 10, 8 + (first - 232) * 10, 8 + (first - 232) * 10);
  const index = first - 16;
  return nearest(CUBE[Math.floor(index / 36)] ?? 0, CUBE[Math.floor(index / 6) % 6] ?? 0, CUBE[index % 6] ?? 0);
}

function nearest(red: number, green: number, blue: number): number {
  let [best, least] = [0, Infinity];
  THEME.forEach(([r, g, b], index) => {
    const distance = (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2;
    if (distance < least) [best, least] = [index, distance];
  });
  return best;
}

function number(text: string | undefined): number {
  const value = Number(text);
  return Number.isInteger(value) && value >= 0 ? value : 0;
}
