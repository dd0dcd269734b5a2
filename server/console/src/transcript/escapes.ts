/** The sequences with which a program drives a terminal (ECMA-48), taken apart; they may be cut anywhere. */

/** The longest control sequence that is understood, in letters; a longer one is dropped. */
const MOST_PARAMETERS = 64;

/** The longest string (a title, a picture) that is dropped, in letters; what follows is text. */
const MOST_STRING = 1 << 20;

/** The effects of a text. */
export interface Screen {
  print(text: string): void;
  newline(): void;
  return(): void;
  back(): void;
  tab(): void;
  style(parameters: string): void;
  control(letter: string, parameter: number): void;
}

/** A letter that is not simply printed: a control character, or one that turns the direction of text. */
const SPECIAL = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

type State = "text" | "escape" | "control" | "string" | "string_escape";

/** A reader of text with sequences. */
export class Escapes {
  #state: State = "text";
  #parameters = "";
  #length = 0;

  /** Forgets the sequence that is under way. */
  reset(): void {
    this.#state = "text";
  }

  /** Reads the next text, and carries out what it says. */
  read(text: string, screen: Screen): void {
    let at = 0;
    while (at < text.length) {
      if (this.#state === "text") {
        SPECIAL.lastIndex = at;
        const end = SPECIAL.exec(text)?.index ?? text.length;
        if (end > at) screen.print(text.slice(at, end));
        if (end < text.length) this.#text(text[end] ?? "", screen);
        at = end + 1;
      } else {
        this.#sequence(text[at] ?? "", screen);
        at++;
      }
    }
  }

  #text(letter: string, screen: Screen): void {
    this.#state = "text";
    switch (letter) {
      case "\n":
        return screen.newline();
      case "\r":
        return screen.return();
      case "\t":
        return screen.tab();
      case "\b":
        return screen.back();
      case "\x1b":
        this.#state = "escape";
        return;
      case "\x9b":
        return this.#begin("control");
      case "\x90":
      case "\x98":
      case "\x9d":
      case "\x9e":
      case "\x9f":
        return this.#begin("string");
    }
    if (TURNS.test(letter)) screen.print("\ufffd");
    else if (letter >= " " && !(letter >= "\x7f" && letter <= "\x9f")) screen.print(letter);
  }

  #begin(state: "control" | "string"): void {
    this.#state = state;
    this.#parameters = "";
    this.#length = 0;
  }

  #sequence(letter: string, screen: Screen): void {
    switch (this.#state) {
      case "escape":
        return this.#escape(letter, screen);
      case "control":
        return this.#control(letter, screen);
      case "string":
        return this.#string(letter, screen);
      case "string_escape":
        this.#state = "text";
        return letter === "\\" ? undefined : this.#escape(letter, screen);
    }
  }

  #escape(letter: string, screen: Screen): void {
    if (letter === "[") this.#begin("control");
    else if ("]PX^_".includes(letter)) this.#begin("string");
    // The first letters of a sequence that chooses a character set.
    else if (letter >= " " && letter <= "/") this.#state = "escape";
    else if (letter >= "0" && letter <= "~") this.#state = "text";
    else this.#text(letter, screen);
  }

  #control(letter: string, screen: Screen): void {
    if (letter >= " " && letter <= "?") {
      if (this.#parameters.length <= MOST_PARAMETERS) this.#parameters += letter;
      return;
    }
    if (letter < "@" || letter > "~") return this.#text(letter, screen);
    this.#state = "text";
    const parameters = this.#parameters;
    if (parameters.length > MOST_PARAMETERS || !/^[\d:;]*$/.test(parameters)) return;
    if (letter === "m") screen.style(parameters);
    else screen.control(letter, Math.min(Number.parseInt(parameters, 10) || 0, 10_000));
  }

  #string(letter: string, screen: Screen): void {
    this.#length++;
    if (letter === "\x07" || letter === "\x9c") this.#state = "text";
    else if (letter === "\x1b") this.#state = "string_escape";
    // A string that a line ends was none, and neither is one without end.
    else if (letter === "\n" || this.#length > MOST_STRING) this.#text(letter, screen);
  }
}
