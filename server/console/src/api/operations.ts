import { queryOptions } from "@tanstack/react-query";
import { answer, api, idempotencyKey } from "./client";
import { queries } from "./query";
import { about, requestOf } from "@/transcript/request";
import { line } from "@/transcript/safe";
import type { Operation, StartOperation } from "./schema";

/** Starts an operation. `key` makes it one operation, also where the request is sent again. */
export async function startOperation(body: StartOperation, key = idempotencyKey()): Promise<Operation> {
  const params = { header: { "Idempotency-Key": key } };
  const started = await answer(api.POST("/api/v1/operations", { params, body }));
  await queries.invalidateQueries({ queryKey: ["operations"] });
  return started;
}

/** Asks to stop an operation with everything that it started. It ends a little later, which its stream tells. */
export async function stopOperation(id: string): Promise<void> {
  await answer(api.POST("/api/v1/operations/{id}/cancel", { params: { path: { id } } }));
  await queries.invalidateQueries({ queryKey: ["operations"] });
}

/** The person's own shell of the machine, as a login shell. */
export const LOGIN_SHELL = 'exec "${SHELL:-/bin/sh}" -l';

/** A place for a shell: a runner by name, or the active one; and a folder, relative to its workspace. */
export interface ShellPlace {
  runner?: string | undefined;
  directory?: string | undefined;
}

/** Opens a shell in a terminal of this size. */
export function startShell(place: ShellPlace, size: { rows: number; columns: number }): Promise<Operation> {
  return startOperation({
    ...(place.runner ? { runner: place.runner } : {}),
    exec: {
      script: LOGIN_SHELL,
      environment: { TERM: "xterm-256color", COLORTERM: "truecolor" },
      terminal: size,
      ...(place.directory ? { directory: place.directory } : {}),
    },
  });
}

/** The bytes of an operation's output that the server has stored so far. It is asked once, when a page opens it. */
export function storedBytesQuery(id: string) {
  return queryOptions({
    // No hint makes it stale: it is a fact about the moment at which the page was opened.
    queryKey: ["stored", id],
    queryFn: async (): Promise<number> => {
      const query = { stream: "stdout" as const, offset: 0, limit: 1 };
      return (await answer(api.GET("/api/v1/operations/{id}/output", { params: { path: { id }, query } }))).end;
    },
    gcTime: 0,
  });
}

/** The background commands of a session: those that run, and the last that ended. */
export function tasksQuery(session: string) {
  return queryOptions({
    queryKey: ["operations", "tasks", session],
    queryFn: async () => {
      const params = { path: { id: session }, query: { limit: 500 } };
      const { tasks } = await answer(api.GET("/api/v1/sessions/{id}/tasks", { params }));
      return tasks.map((task) => ({
        number: task.number,
        operation: task.operation,
        about: line(about(requestOf(task.tool, task.arguments))),
        runnerName: line(task.runner),
        startedAt: Date.parse(task.started_at),
        lastLine: "",
        ended: task.ended ?? null,
      }));
    },
  });
}

/** The most shells that are looked for: whether an operation has a terminal is asked one by one. */
const SHELLS = 20;

/** The person's open operations that run in a terminal, on whichever device they were opened; the newest first. */
export const shellsQuery = queryOptions({
  queryKey: ["operations", "shells"],
  queryFn: async (): Promise<Operation[]> => {
    const { operations } = await answer(api.GET("/api/v1/operations", { params: { query: { state: "open", limit: 100 } } }));
    const commands = operations.filter((one) => one.kind === "exec" && !one.session).slice(0, SHELLS);
    const terminals = await Promise.all(commands.map(async (one) => ((await inputOf(one.id)) === "terminal" ? [one] : [])));
    return terminals.flat();
  },
});

/** The kind of an operation's input, which lists leave out. It never changes. */
async function inputOf(id: string): Promise<Operation["input"]> {
  const query = { queryKey: ["operation-input", id], queryFn: () => answer(api.GET("/api/v1/operations/{id}", { params: { path: { id } } })) };
  return (await queries.fetchQuery(query)).input;
}
