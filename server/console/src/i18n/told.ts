/**
 * The server's sentences in the person's language.
 *
 * The server writes reasons, notices and refusals in English, most of them without a code. `zh/told` has the Chinese of
 * those that people meet, under the English: `{name}` stands for what the server puts there. A sentence that is not in it
 * is shown as it came.
 */
import i18next from "i18next";
import { moment } from "@/format/time";
import { isolationWords } from "./isolation";

/** The server's sentences in one language. */
export interface PhraseBook {
  /** A sentence by the English one. Of a part `{reason…}` the words are told as well; `{isolation}` has properties. */
  readonly sentences: Readonly<Record<string, string>>;
  /** A sentence for each code of a problem. `{detail}` is the server's own. */
  readonly problems: Readonly<Record<string, string>>;
}

interface Pattern {
  readonly fits: RegExp;
  readonly words: string;
}

const PART = /\{([a-z]+)\}/g;
const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

let book: PhraseBook = { sentences: {}, problems: {} };
let patterns: readonly Pattern[] = [];

/** Tells in the words of this book from now on; without one, in the server's. */
export function tellBy(chosen: PhraseBook = { sentences: {}, problems: {} }): void {
  book = chosen;
  patterns = Object.entries(chosen.sentences)
    .filter(([english]) => english.includes("{"))
    // Of those that fit the one counts that leaves the fewest letters open.
    .sort(([one], [other]) => literal(other) - literal(one))
    .map(([english, words]) => ({ fits: patternOf(english), words }));
}

/** A sentence of the server's, in the person's language where there is one, with its times as people write them. */
export function told(sentence: string): string {
  return withTimes(translated(sentence) ?? sentence);
}

/** The words of a problem: its sentence, or else that of its code. */
export function toldProblem(code: string, detail: string): string {
  const words = translated(detail) ?? ofCode(code)?.replace("{detail}", () => detail) ?? detail;
  return withTimes(words);
}

function ofCode(code: string): string | undefined {
  return Object.hasOwn(book.problems, code) ? book.problems[code] : undefined;
}

function translated(sentence: string): string | undefined {
  if (Object.hasOwn(book.sentences, sentence)) return book.sentences[sentence];
  for (const { fits, words } of patterns) {
    const parts = fits.exec(sentence)?.groups;
    if (parts) return words.replace(PART, (_, name: string) => part(name, parts[name] ?? ""));
  }
  return undefined;
}

function part(name: string, words: string): string {
  if (name === "isolation") return isolationWords(words);
  return name.startsWith("reason") ? (translated(words) ?? words) : words;
}

function literal(english: string): number {
  return english.replace(PART, "").length;
}

function patternOf(english: string): RegExp {
  const escaped = english.replace(/[.*+?^$()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replace(PART, "(?<$1>.+?)")}$`, "s");
}

function withTimes(words: string): string {
  return words.replace(TIME, (at) => moment(at, i18next.language));
}
