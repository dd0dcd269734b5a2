/** The outputs of calls as items show them. */

import { MOST_LINES, MOST_UNITS, type OutputLine, type Terminal, terminalLines } from "./ansi";
import type { Output } from "./model";
import { byteLength } from "./utf8";

/** The output that a call's event tells. It is taken apart when it is painted, because most of a log never is. */
export class RecordedOutput implements Output {
  readonly missing = 0;
  #cut: { readonly shown: string; readonly leftOut: number } | null = null;

  private constructor(
    private readonly raw: string,
    private readonly before: number,
  ) {}

  /** The output, before which so many bytes are left out already; its last 64 KiB, about, where it is longer. */
  static of(raw: string, leftOut = 0): RecordedOutput {
    return new RecordedOutput(raw, leftOut).shortened(MOST_UNITS);
  }

  /** Its size, in UTF-16 units. */
  get units(): number {
    return this.raw.length;
  }

  lines(): readonly OutputLine[] {
    return terminalLines(this.#last().shown);
  }

  get leftOut(): number {
    return this.#last().leftOut;
  }

  /** Its last lines, as many as are shown. */
  #last(): { readonly shown: string; readonly leftOut: number } {
    if (this.#cut) return this.#cut;
    let from = this.raw.endsWith("\n") ? this.raw.length - 1 : this.raw.length;
    for (let line = 0; line < MOST_LINES && from >= 0; line++)
      from = from > 0 ? this.raw.lastIndexOf("\n", from - 1) : -1;
    const shown = this.raw.slice(from + 1);
    this.#cut = { shown, leftOut: this.before + byteLength(this.raw.slice(0, from + 1)) };
    return this.#cut;
  }

  /** The same with only its last lines. */
  shortened(units: number): RecordedOutput {
    if (this.raw.length <= units) return this;
    const from = this.raw.indexOf("\n", this.raw.length - units) + 1 || this.raw.length - units;
    // A copy: a slice would keep the whole text in memory.
    const raw = JSON.parse(JSON.stringify(this.raw.slice(from))) as string;
    return new RecordedOutput(raw, this.before + byteLength(this.raw.slice(0, from)));
  }
}

/** The output of a terminal at this moment. */
export function outputOf(terminal: Terminal): Output {
  const lines = terminal.lines();
  return { lines: () => lines, leftOut: terminal.leftOut, missing: terminal.missing };
}
