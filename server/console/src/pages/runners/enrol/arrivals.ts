import type { Runner } from "@/api/schema";

/** What tells the runners of a token from others. */
export interface Expected {
  terms: { name: string; fleet: boolean };
  /** The ids of the runners that were there before the token was made. */
  before: ReadonlySet<string>;
}

/**
 * The runners that came since a token was made, and belong to the person who made it.
 *
 * A runner does not say by which token it came. A token with a name is certain, because names are unique.
 */
export function arrivals(runners: readonly Runner[], expected: Expected, owner: string | undefined): Runner[] {
  const { name, fleet } = expected.terms;
  return runners.filter((runner) => !expected.before.has(runner.id) && runner.owner === owner && (fleet || name === "" || runner.name === name));
}
