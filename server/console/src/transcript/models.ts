/** The models that answer in a session: who answers than before, and what each of them cost in tokens. */

import type { Origin, Usage } from "@/api/schema";
import type { ModelUse } from "./facts";
import type { Note, Tokens } from "./model";
import { line } from "./safe";

/** The most models that are told apart; the last takes the tokens of those beyond. */
const MOST_MODELS = 16;

/** No tokens. */
export const NONE: Tokens = { input: 0, cached: 0, cacheWritten: 0, output: 0, thoughts: 0 };

/** The tokens that an event tells. */
export function tokens(usage: Usage): Tokens {
  return {
    input: usage.input,
    cached: usage.cached,
    cacheWritten: usage.cache_written ?? 0,
    output: usage.output,
    thoughts: usage.thoughts ?? 0,
  };
}

/** The sum of tokens. */
export function sum(one: Tokens, other: Tokens): Tokens {
  return {
    input: one.input + other.input,
    cached: one.cached + other.cached,
    cacheWritten: one.cacheWritten + other.cacheWritten,
    output: one.output + other.output,
    thoughts: one.thoughts + other.thoughts,
  };
}

/** The uses of models with another answer. */
export function used(models: readonly ModelUse[], model: string, usage: Tokens): readonly ModelUse[] {
  const known = models.findIndex((use) => use.model === model);
  const at = known < 0 && models.length >= MOST_MODELS ? models.length - 1 : known;
  if (at < 0) return [...models, { model, answers: 1, usage }];
  return models.map((use, place) =>
    place === at ? { ...use, answers: use.answers + 1, usage: sum(use.usage, usage) } : use,
  );
}

/** The model that answered last, by which a change of it is noticed. */
export class Models {
  /** The choice with which the session began, until a model has answered. */
  #chosen: string | null = null;
  #last: { readonly model: string; readonly origin: Origin | null } | null = null;

  /** The session begins with this choice of models. */
  chosen(choice: string): void {
    this.#chosen = choice;
  }

  /** The note on the model of this answer, where it is another than before or than was chosen. */
  answer(model: string, origin: Origin | null): Note | null {
    const [before, choice] = [this.#last, this.#chosen];
    this.#last = { model, origin };
    this.#chosen = null;
    const isOther = before ? !isSame(before, this.#last) : choice !== null && !meansFirst(choice, model);
    if (!isOther) return null;
    return {
      type: "model_changed",
      model: line(model),
      account: line(host(origin?.account ?? "")),
      before: before ? line(before.model) : null,
    };
  }
}

function isSame(
  one: { readonly model: string; readonly origin: Origin | null },
  other: { readonly model: string; readonly origin: Origin | null },
): boolean {
  if (one.model !== other.model) return false;
  // An earlier release recorded no origin.
  if (!one.origin || !other.origin) return true;
  return one.origin.account === other.origin.account && one.origin.format === other.origin.format;
}

/** An account without its id, which tells people nothing. */
function host(account: string): string {
  return account.replace(/ [a-z]{3}_[0-9a-z]{26}$/, "");
}

/** True if the first name of this choice is that of the model, alone or behind an account or a runner. */
function meansFirst(choice: string, model: string): boolean {
  const first = choice.split(",", 1)[0]?.trim() ?? "";
  if (!first.endsWith(model)) return false;
  const rest = first.slice(0, first.length - model.length);
  return rest === "" || rest.endsWith("/");
}
