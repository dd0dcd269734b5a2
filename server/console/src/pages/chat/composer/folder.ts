import { answer, api, idempotencyKey } from "@/api/client";
import { queries } from "@/api/query";
import type { ListedEntry } from "@/api/schema";

/** Most entries of a folder that are looked at. */
const MOST_ENTRIES = 1000;
/** The longest wait for the runner, in milliseconds. */
const WITHIN_MS = 5000;
/** How long a folder's entries count as they were, in milliseconds. */
const FRESH_MS = 15_000;

/** A folder of a runner could not be listed. The message says why, for people. */
export class FolderError extends Error {
  override readonly name = "FolderError";
}

/**
 * The entries of a folder of a runner, as they were within the last seconds. `place` is the runner's name or id, alone
 * or with `/WORKSPACE`; without one it is the person's active runner. `path` is relative to the workspace.
 */
export function folderEntries(place: string | undefined, path: string): Promise<ListedEntry[]> {
  return queries.fetchQuery({
    queryKey: ["folders", place ?? "", path],
    queryFn: ({ signal }) => list(place, path, signal),
    staleTime: FRESH_MS,
    gcTime: FRESH_MS,
    retry: false,
  });
}

/** Ends the listing of folders that nobody waits for any more. */
export function forgetFolders(): void {
  void queries.cancelQueries({ queryKey: ["folders"] });
}

async function list(place: string | undefined, path: string, signal: AbortSignal): Promise<ListedEntry[]> {
  const body = { ...(place ? { runner: place } : {}), list: { path, limit: MOST_ENTRIES }, timeout_ms: WITHIN_MS };
  let operation = await answer(api.POST("/api/v1/operations", { params: { header: { "Idempotency-Key": idempotencyKey() } }, body, signal }));
  const at = { path: { id: operation.id } };
  if (operation.state === "open") {
    // A file operation has no output: the answer comes at its end, or when the wait is over.
    await answer(api.GET("/api/v1/operations/{id}/output", { params: { ...at, query: { wait_ms: WITHIN_MS } }, signal }));
    operation = await answer(api.GET("/api/v1/operations/{id}", { params: at, signal }));
  }
  const end = operation.end;
  if (end?.kind === "done" && end.listing) return end.listing.entries;
  if (operation.state === "open") void api.POST("/api/v1/operations/{id}/cancel", { params: at });
  throw new FolderError(end?.words ?? "");
}
