/**
 * The output of a program as a terminal shows it, bounded and harmless.
 *
 * Colours and weights become class names. `\r`, `\b`, tabs, and the motions and erasures with which programs draw their
 * progress again are carried out on the lines that are kept. Every other sequence is dropped. At most 200 lines and
 * 64 KiB are kept, the last ones.
 */

import { Escapes } from "./escapes";
import { Row } from "./row";
import { styled } from "./sgr";
import { byteLength } from "./utf8";

/** The most lines that are kept. */
export const MOST_LINES = 200;

/** The most text that is kept, in UTF-16 units. */
export const MOST_UNITS = 64 * 1024;

/** One line of a program's output. */
export type OutputLine =
  | { readonly kind: "text"; readonly spans: readonly Span[] }
  /** Bytes that never came. */
  | { readonly kind: "gap"; readonly bytes: number };

/** A piece of a line in one style. */
export interface Span {
  readonly text: string;
  /** Class names such as `ansi-red ansi-bold`, one of {@link styled}'s; empty for plain text. */
  readonly classes: string;
}

/** The lines of one program, whose output is pushed as it comes, cut anywhere. */
export class Terminal {
  /** The bytes of output before the lines that are kept. */
  leftOut = 0;
  /** The bytes that never came. */
  missing = 0;
  #rows: Row[] = [new Row()];
  /** The place of the cursor: its row among those that are kept, and its column. */
  #at = 0;
  #column = 0;
  #style = 0;
  #units = 0;
  readonly #escapes = new Escapes();

  /** Takes the next text. */
  push(text: string): void {
    this.#escapes.read(text, this);
    this.#bound();
  }

  /** Marks bytes that never came. They end the line, and the sequence that they cut. */
  gap(bytes: number): void {
    if (bytes <= 0) return;
    this.missing += bytes;
    this.#escapes.reset();
    this.#toEnd();
    const before = this.#row.isEmpty ? this.#rows[this.#at - 1] : undefined;
    if (before && before.gap > 0) {
      before.setGap(before.gap + bytes);
      return;
    }
    if (!this.#row.isEmpty) this.newline();
    this.#row.setGap(bytes);
    this.newline();
    this.#bound();
  }

  /** The lines; those that did not change since the last call are the same objects. */
  lines(): readonly OutputLine[] {
    const last = this.#rows[this.#rows.length - 1];
    const shown = last?.isEmpty ? this.#rows.slice(0, -1) : this.#rows;
    return shown.map((row) => row.line());
  }

  /** The last line that shows something, as plain text. */
  lastLine(): string {
    for (let at = this.#rows.length - 1; at >= 0; at--) {
      const text = this.#rows[at]?.text().trim();
      if (text) return text;
    }
    return "";
  }

  /** True if nothing was written and nothing is missing. */
  get isEmpty(): boolean {
    return this.leftOut === 0 && this.#rows.length === 1 && this.#row.isEmpty;
  }

  /** Prints letters that are harmless; called by the reader of sequences, as all below are. */
  print(text: string): void {
    const row = this.#row;
    const before = row.units;
    this.#column = row.print(this.#column, text, this.#style);
    this.#units += row.units - before;
    row.bytes += byteLength(text);
  }

  newline(): void {
    this.#row.bytes++;
    this.#column = 0;
    this.#at++;
    if (this.#at === this.#rows.length) {
      this.#rows.push(new Row());
      if (this.#rows.length > 2 * MOST_LINES) this.#bound();
    }
  }

  return(): void {
    this.#column = 0;
  }

  back(): void {
    if (this.#column > 0) this.#column--;
  }

  tab(): void {
    this.#forward(8 - (this.#column % 8));
  }

  style(parameters: string): void {
    this.#style = styled(this.#style, parameters);
  }

  /** Moves or erases by a control sequence (ECMA-48): its last letter and its first parameter. */
  control(letter: string, parameter: number): void {
    const count = Math.max(1, parameter);
    switch (letter) {
      case "A":
      case "F":
        this.#at = Math.max(0, this.#at - count);
        break;
      case "B":
      case "E":
        this.#at = Math.min(this.#rows.length - 1, this.#at + count);
        break;
      case "C":
        this.#forward(Math.min(count, 512));
        break;
      case "D":
        this.#column = Math.max(0, this.#column - count);
        break;
      case "G":
        this.#column = Math.min(count - 1, 512);
        break;
      case "K":
        this.#erase(() =>
          this.#row.erase(parameter === 0 ? this.#column : 0, parameter === 1 ? this.#column : Infinity),
        );
        break;
      case "J":
        if (parameter === 0) this.#eraseBelow();
        break;
    }
    if (letter === "E" || letter === "F") this.#column = 0;
  }

  get #row(): Row {
    // The cursor is always on a row that is kept.
    return this.#rows[this.#at] as Row;
  }

  #forward(columns: number): void {
    const missing = this.#column + columns - Math.max(this.#row.columns, this.#column);
    this.#column += columns;
    if (missing <= 0) return;
    // Behind the end of the line a terminal has blanks.
    this.#erase(() => this.#row.pad(this.#column));
  }

  #toEnd(): void {
    this.#at = this.#rows.length - 1;
    this.#column = this.#row.columns;
  }

  #eraseBelow(): void {
    this.#erase(() => this.#row.erase(this.#column, Infinity));
    for (const row of this.#rows.splice(this.#at + 1)) this.#units -= row.units;
  }

  #erase(change: () => void): void {
    const before = this.#row.units;
    change();
    this.#units += this.#row.units - before;
  }

  #bound(): void {
    let [gone, units] = [0, this.#units];
    const last = this.#rows.length - 1;
    while (gone < last && (this.#rows.length - gone > MOST_LINES + 1 || units > MOST_UNITS)) {
      const row = this.#rows[gone] as Row;
      units -= row.units;
      this.leftOut += row.bytes;
      gone++;
    }
    if (gone === 0) return;
    this.#rows.splice(0, gone);
    this.#units = units;
    this.#at = Math.max(0, this.#at - gone);
  }
}

/** The lines of a whole output. */
export function terminalLines(text: string): readonly OutputLine[] {
  const terminal = new Terminal();
  terminal.push(text);
  return terminal.lines();
}
