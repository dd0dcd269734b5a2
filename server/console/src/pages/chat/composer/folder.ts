import { listFolder } from "@/api/files";
import { queries } from "@/api/query";
import type { ListedEntry } from "@/api/schema";

/** How long a folder's entries count as they were, in milliseconds. */
const FRESH_MS = 15_000;

/**
 * The entries of a folder of a runner, as they were within the last seconds. `place` is the runner's name or id, alone
 * or with `/WORKSPACE`; without one it is the person's active runner. `path` is relative to the workspace.
 */
export function folderEntries(place: string | undefined, path: string): Promise<ListedEntry[]> {
  return queries.fetchQuery({
    queryKey: ["folders", place ?? "", path],
    queryFn: async ({ signal }) => (await listFolder(place, path, "", signal)).entries,
    staleTime: FRESH_MS,
    gcTime: FRESH_MS,
    retry: false,
  });
}

/** Ends the listing of folders that nobody waits for any more. */
export function forgetFolders(): void {
  void queries.cancelQueries({ queryKey: ["folders"] });
}
