/** Joins a folder and a name; both are relative to the workspace. */
export function join(folder: string, name: string): string {
  return folder === "" ? name : `${folder}/${name}`;
}

/** The parts of a path, each with the path that leads to it. */
export function crumbs(path: string): { name: string; path: string }[] {
  const parts = path.split("/").filter(Boolean);
  return parts.map((name, index) => ({ name, path: parts.slice(0, index + 1).join("/") }));
}

/** True for a name that can be given: not empty, no path, and no name of the system's own. */
export function isName(name: string): boolean {
  return name !== "" && name !== "." && name !== ".." && !name.includes("/") && !name.includes("\0") && new TextEncoder().encode(name).length <= 255;
}
