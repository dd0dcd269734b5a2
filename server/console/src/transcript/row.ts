/** One line of a terminal, in runs of one style. While it is written over, each of its columns stands alone. */

import type { OutputLine, Span } from "./ansi";
import { wholeCharacters } from "./safe";
import { classesOf } from "./sgr";

/** The longest line, in columns; the rest of it is cut off. */
export const MOST_COLUMNS = 4096;

/** The longest line, in UTF-16 units; a few columns may have many marks. */
export const MOST_ROW_UNITS = 4 * MOST_COLUMNS;

/** The runs of one style in a line; the last takes the text of those beyond. */
const MOST_RUNS = 512;

interface Run {
  text: string;
  style: number;
}

/** A letter in its column, with its marks; the second column of a wide letter is empty. */
type Cell = Run;

/** A line of a terminal. */
export class Row {
  /** The bytes that came for this line. */
  bytes = 0;
  /** The length of its text, in UTF-16 units. */
  units = 0;
  columns = 0;
  /** The bytes that are missing here, where the line stands for a gap. */
  gap = 0;
  #runs: Run[] = [];
  #cells: Cell[] | null = null;
  #isCut = false;
  #line: OutputLine | null = null;

  /** True if it shows nothing. */
  get isEmpty(): boolean {
    return this.columns === 0 && this.units === 0 && this.gap === 0;
  }

  /** Makes it stand for missing bytes. */
  setGap(bytes: number): void {
    this.gap = bytes;
    this.#line = null;
  }

  /** Prints letters from a column on; returns the column behind them. */
  print(column: number, text: string, style: number): number {
    this.#line = null;
    if (column > this.columns) this.pad(column);
    return column === this.columns && !this.#cells ? this.#append(text, style) : this.#overwrite(column, text, style);
  }

  /** Fills it with blanks up to a column. */
  pad(column: number): void {
    const blanks = Math.min(column, MOST_COLUMNS) - this.columns;
    if (blanks <= 0) return;
    this.#line = null;
    if (this.#cells) for (let at = 0; at < blanks; at++) this.#cells.push({ text: " ", style: 0 });
    else this.#run(" ".repeat(blanks), 0);
    this.columns += blanks;
    this.units += blanks;
  }

  /** Erases the columns from one to another, both among them. */
  erase(from: number, to: number): void {
    if (from >= this.columns) return;
    const cells = this.#exploded();
    if (to >= this.columns) {
      for (const cell of cells.splice(from)) this.units -= cell.text.length;
      this.columns = from;
      this.#isCut = false;
      return;
    }
    for (let at = from; at <= to && at < cells.length; at++) this.#put(cells, at, " ", 0);
  }

  /** The line for display; the same object until something changes. */
  line(): OutputLine {
    if (this.gap > 0) return (this.#line ??= { kind: "gap", bytes: this.gap });
    return (this.#line ??= { kind: "text", spans: this.#spans() });
  }

  /** Its plain text. */
  text(): string {
    return (this.#cells ?? this.#runs).map((run) => run.text).join("");
  }

  #append(text: string, style: number): number {
    if (this.#isCut) return this.columns;
    const plain = !/[^\x20-\x7e]/.test(text);
    let columns = plain ? text.length : 0;
    let fits = text;
    if (!plain) {
      for (const letter of text) columns += columnsOf(letter.codePointAt(0) ?? 0);
    }
    if (this.columns + columns > MOST_COLUMNS || this.units + text.length > MOST_ROW_UNITS) {
      this.#isCut = true;
      const room = Math.max(0, Math.min(MOST_COLUMNS - this.columns, MOST_ROW_UNITS - this.units));
      fits = `${wholeCharacters(text, room)}…`;
      columns = Math.min(columns, MOST_COLUMNS - this.columns) + 1;
    }
    this.#run(fits, style);
    this.columns += columns;
    this.units += fits.length;
    return this.columns;
  }

  #run(text: string, style: number): void {
    const last = this.#runs[this.#runs.length - 1];
    if (last && (last.style === style || this.#runs.length >= MOST_RUNS)) last.text += text;
    else this.#runs.push({ text, style });
  }

  #overwrite(column: number, text: string, style: number): number {
    const cells = this.#exploded();
    for (const letter of text) {
      const columns = columnsOf(letter.codePointAt(0) ?? 0);
      if (columns === 0) {
        const before = cells[column - 1];
        if (before && this.units < MOST_ROW_UNITS) {
          before.text += letter;
          this.units += letter.length;
        }
        continue;
      }
      if (column + columns > MOST_COLUMNS || this.units >= MOST_ROW_UNITS) return column;
      this.#put(cells, column, letter, style);
      if (columns === 2) this.#put(cells, column + 1, "", style);
      column += columns;
    }
    return column;
  }

  #put(cells: Cell[], column: number, text: string, style: number): void {
    const before = cells[column];
    this.units += text.length - (before?.text.length ?? 0);
    cells[column] = { text, style };
    this.columns = cells.length;
  }

  /** Its columns, each by itself. */
  #exploded(): Cell[] {
    this.#line = null;
    if (this.#cells) return this.#cells;
    const cells: Cell[] = [];
    for (const run of this.#runs) {
      for (const letter of run.text) {
        const columns = columnsOf(letter.codePointAt(0) ?? 0);
        const before = cells[cells.length - 1];
        if (columns === 0 && before) before.text += letter;
        else cells.push({ text: letter, style: run.style });
        if (columns === 2) cells.push({ text: "", style: run.style });
      }
    }
    this.#cells = cells;
    this.#runs = [];
    this.columns = cells.length;
    return cells;
  }

  #spans(): Span[] {
    if (this.#cells) {
      // It is complete again, most likely: it takes less room in runs.
      for (const cell of this.#cells) this.#run(cell.text, cell.style);
      this.#cells = null;
    }
    return this.#runs.filter((run) => run.text).map((run) => ({ text: run.text, classes: classesOf(run.style) }));
  }
}

/** The columns of a letter: 0 for marks, 2 for the wide letters of East Asia and for emoji. */
function columnsOf(code: number): number {
  if (code < 0x300) return 1;
  if (/\p{M}/u.test(String.fromCodePoint(code)) || (code >= 0x200b && code <= 0x200f) || code === 0xfeff) return 0;
  const isWide =
    (code >= 0x1100 && code <= 0x115f) ||
    (code >= 0x2e80 && code <= 0xa4cf) ||
    (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xfe30 && code <= 0xfe6f) ||
    (code >= 0xff00 && code <= 0xff60) ||
    (code >= 0xffe0 && code <= 0xffe6) ||
    (code >= 0x1f300 && code <= 0x1faff) ||
    (code >= 0x20000 && code <= 0x3fffd);
  return isWide ? 2 : 1;
}
