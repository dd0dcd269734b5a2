/**
 * Small values that this browser keeps. A browser may deny storage, or have no room left: then a value lives as long as
 * the page, and nothing fails.
 */
const inMemory = new Map<string, string>();

/** The beginnings of names under which nothing is kept any more: their person has left this page. */
let sealed: readonly string[] = [];

/** The value that was kept under this name. */
export function kept(name: string): string | undefined {
  try {
    return localStorage.getItem(name) ?? inMemory.get(name);
  } catch {
    return inMemory.get(name);
  }
}

/** Keeps a value; undefined forgets it. Returns false if it lives only as long as the page. */
export function keep(name: string, value: string | undefined): boolean {
  if (value !== undefined && begins(name, sealed)) return false;
  try {
    if (value === undefined) {
      inMemory.delete(name);
      localStorage.removeItem(name);
    } else {
      inMemory.set(name, value);
      localStorage.setItem(name, value);
      inMemory.delete(name);
    }
    return true;
  } catch {
    return false;
  }
}

/** Forgets all values whose names begin so. With `seal` this page keeps no such value after that. */
export function forgetAll(beginnings: readonly string[], seal = false): void {
  if (seal) sealed = beginnings;
  for (const name of names()) if (begins(name, beginnings)) keep(name, undefined);
}

function begins(name: string, beginnings: readonly string[]): boolean {
  return beginnings.some((beginning) => name.startsWith(beginning));
}

function names(): string[] {
  try {
    return [...inMemory.keys(), ...Object.keys(localStorage)];
  } catch {
    return [...inMemory.keys()];
  }
}
