import { queryOptions } from "@tanstack/react-query";
import { answer, api, idempotencyKey } from "./client";
import { queries } from "./query";
import type { ChangeSandbox, Sandbox, Sandboxes, StateChange } from "./schema";

/** Sandboxes that are asked for at once. */
const PAGE = 500;

/** Pages of sandboxes that are asked for at most. */
const PAGES = 4;

/** The sandboxes that the person may see. */
export interface AllSandboxes {
  sandboxes: Sandbox[];
  /** True if there are more than the console asks for. */
  cut: boolean;
}

async function allSandboxes(): Promise<AllSandboxes> {
  const sandboxes: Sandbox[] = [];
  let after: string | undefined;
  for (let page = 0; page < PAGES; page += 1) {
    const query = { limit: PAGE, ...(after ? { after } : {}) };
    const found: Sandboxes = await answer(api.GET("/api/v1/sandboxes", { params: { query } }));
    sandboxes.push(...found.sandboxes);
    after = found.next ?? undefined;
    if (!after) break;
  }
  return { sandboxes, cut: after !== undefined };
}

/** See {@link AllSandboxes}. */
export const sandboxesQuery = queryOptions({ queryKey: ["sandboxes", "all"], queryFn: allSandboxes });

/** The recent changes of a sandbox's state, the newest last: at most 50. */
export function changesQuery(id: string) {
  return queryOptions({
    queryKey: ["sandboxes", "changes", id],
    queryFn: async (): Promise<StateChange[]> => (await answer(api.GET("/api/v1/sandboxes/{id}/changes", { params: { path: { id } } }))).changes,
  });
}

async function after<T>(request: Promise<T>): Promise<T> {
  const done = await request;
  await queries.invalidateQueries({ queryKey: ["sandboxes"] });
  return done;
}

/** Makes the person's own sandbox on a runner of this id or name. */
export function createSandbox(runner: string): Promise<Sandbox> {
  const header = { "Idempotency-Key": idempotencyKey() };
  return after(answer(api.POST("/api/v1/sandboxes", { params: { header }, body: { runner } })));
}

/** Starts a sandbox now instead of with its next operation. */
export function startSandbox(id: string): Promise<Sandbox> {
  return after(answer(api.POST("/api/v1/sandboxes/{id}/start", { params: { path: { id } } })));
}

/** Stops a sandbox and what runs in it. Its files stay. */
export function stopSandbox(id: string): Promise<Sandbox> {
  return after(answer(api.POST("/api/v1/sandboxes/{id}/stop", { params: { path: { id } } })));
}

/** Changes a sandbox's template and limits from its next start on. */
export function changeSandbox(id: string, change: ChangeSandbox): Promise<Sandbox> {
  return after(answer(api.PATCH("/api/v1/sandboxes/{id}", { params: { path: { id } }, body: change })));
}

/** Removes a sandbox with its files. */
export function removeSandbox(id: string): Promise<unknown> {
  return after(answer(api.DELETE("/api/v1/sandboxes/{id}", { params: { path: { id } } })));
}
