/**
 * Small values that this browser keeps. A browser may deny storage, or have no room left: then a value lives as long as
 * the page, and nothing fails.
 */
const inMemory = new Map<string, string>();

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
