import { queryOptions } from "@tanstack/react-query";
import { openOperation } from "@/live/operation";
import { answer, api, idempotencyKey } from "./client";
import { startOperation } from "./operations";
import { queries } from "./query";
import type { Listing, OperationEnd, StartOperation } from "./schema";

/** A file operation that did not come to its end as it was asked for. The message says why, for people. */
export class FileError extends Error {
  override readonly name = "FileError";
}

/** The longest time for a small file operation, in milliseconds. */
const WITHIN_MS = 20_000;
/** The entries of one page of a folder: the most that a runner lists at once. */
export const ENTRIES_AT_ONCE = 1000;

type Request = Omit<StartOperation, "runner" | "timeout_ms">;
type Done = Extract<OperationEnd, { kind: "done" }>;

/** Starts a small file operation and waits for its end. */
async function carryOut(runner: string | undefined, request: Request, signal?: AbortSignal): Promise<Done> {
  const params = { header: { "Idempotency-Key": idempotencyKey() } };
  const body = { ...request, ...(runner ? { runner } : {}), timeout_ms: WITHIN_MS };
  const heard = signal ? { signal } : {};
  let operation = await answer(api.POST("/api/v1/operations", { params, body, ...heard }));
  const at = { path: { id: operation.id } };
  if (operation.state === "open") {
    // It has no output: the answer comes at its end, or when the wait is over.
    await answer(api.GET("/api/v1/operations/{id}/output", { params: { ...at, query: { wait_ms: WITHIN_MS } }, ...heard }));
    operation = await answer(api.GET("/api/v1/operations/{id}", { params: at, ...heard }));
  }
  if (operation.state === "open") void api.POST("/api/v1/operations/{id}/cancel", { params: at });
  return done(operation.end);
}

function done(end: OperationEnd | null | undefined): Done {
  if (end?.kind === "done") return end;
  throw new FileError(end?.words ?? "");
}

/** The entries of a folder, as they are now; see {@link folderQuery}. */
export async function listFolder(runner: string | undefined, path: string, after: string, signal: AbortSignal): Promise<Listing> {
  const end = await carryOut(runner, { list: { path, limit: ENTRIES_AT_ONCE, after } }, signal);
  return end.listing ?? { entries: [], more: false };
}

/** The entries of a folder; `path` is relative to the workspace, `after` the name behind which the page begins. */
export function folderQuery(runner: string | undefined, path: string, after: string) {
  return queryOptions({
    queryKey: ["files", runner ?? "", path, after],
    queryFn: ({ signal }) => listFolder(runner, path, after, signal),
    // Files change without a hint, so to open a folder asks again.
    staleTime: 0,
    refetchOnMount: "always",
  });
}

async function changed(): Promise<void> {
  await queries.invalidateQueries({ queryKey: ["files"] });
}

/** Makes a folder. */
export async function makeFolder(runner: string | undefined, path: string): Promise<void> {
  await carryOut(runner, { make_directory: { path } });
  await changed();
}

/** Gives an entry another path. Nothing is replaced. */
export async function moveEntry(runner: string | undefined, from: string, to: string): Promise<void> {
  await carryOut(runner, { move: { from, to } });
  await changed();
}

/** Removes an entry; a folder with all that is in it. */
export async function removeEntry(runner: string | undefined, path: string): Promise<void> {
  await carryOut(runner, { remove: { path, tree: true } });
  await changed();
}

/** The largest file that a page holds in its memory, in bytes. `gantry cp` copies larger ones. */
export const LARGEST = 256 * 1024 * 1024;

/** Reads a whole file. `tell` hears the bytes that came so far. */
export async function readFile(runner: string | undefined, path: string, signal: AbortSignal, tell: (bytes: number) => void = () => {}): Promise<Blob> {
  const operation = await startOperation({ download: { path }, ...(runner ? { runner } : {}) });
  return new Promise((resolve, reject) => {
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    let have = 0;
    const fail = (error: Error) => {
      following.close();
      signal.removeEventListener("abort", abort);
      void api.POST("/api/v1/operations/{id}/cancel", { params: { path: { id: operation.id } } });
      reject(error);
    };
    const abort = () => fail(new FileError(""));
    const following = openOperation({
      id: operation.id,
      from: { stdout: 0, stderr: 0 },
      onOutput: (piece, taken) => {
        pieces.push(piece.data);
        have += piece.data.length;
        if (have > LARGEST) return fail(new FileError(""));
        taken();
        following.taken(have);
        tell(have);
      },
      onGap: () => fail(new FileError("")),
      onState: () => undefined,
      onEnd: (end) => {
        signal.removeEventListener("abort", abort);
        if (end.why === "ended" && end.operation.end?.kind === "done") resolve(new Blob(pieces, { type: "application/octet-stream" }));
        else reject(new FileError(end.why === "ended" ? (end.operation.end?.words ?? "") : end.why === "refused" ? end.problem.detail : ""));
      },
    });
    if (signal.aborted) fail(new FileError(""));
    else signal.addEventListener("abort", abort, { once: true });
  });
}

/** The bytes of an upload that are sent at a time. */
const PIECE = 64 * 1024;

/** Writes a whole file. It appears only once all bytes have arrived. `tell` hears the bytes that were handed over. */
export async function writeFile(runner: string | undefined, path: string, file: File, tell: (bytes: number) => void): Promise<void> {
  if (file.size > LARGEST) throw new FileError("");
  const bytes = new Uint8Array(await file.arrayBuffer());
  const digest = [...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const upload = { path, bytes: bytes.length, digest };
  const operation = await startOperation({ upload, ...(runner ? { runner } : {}) });
  await new Promise<void>((resolve, reject) => {
    let sent = 0;
    let retry: ReturnType<typeof setTimeout> | undefined;
    const following = openOperation({
      id: operation.id,
      from: { stdout: 0, stderr: 0 },
      onOutput: (_, taken) => taken(),
      onGap: () => undefined,
      onState: () => undefined,
      onEnd: (end) => {
        clearTimeout(retry);
        if (end.why === "ended" && end.operation.end?.kind === "done") resolve();
        else reject(new FileError(end.why === "ended" ? (end.operation.end?.words ?? "") : end.why === "refused" ? end.problem.detail : ""));
      },
    });
    const send = () => {
      while (sent < bytes.length) {
        // It holds at most 1 MiB that the server has not taken; then this waits a little.
        if (!following.write(bytes.subarray(sent, sent + PIECE))) {
          retry = setTimeout(send, 20);
          return;
        }
        sent = Math.min(bytes.length, sent + PIECE);
        tell(sent);
      }
      following.endInput();
    };
    send();
  });
  await changed();
}
