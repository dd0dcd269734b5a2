import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import { queries } from "./query";
import type { Runner, Runners } from "./schema";

/** The runners that the person may choose, by name. */
export const runnersQuery = queryOptions({
  queryKey: ["runners", "all"],
  queryFn: (): Promise<Runners> => answer(api.GET("/api/v1/runners", { params: { query: { limit: 500 } } })),
});

/** Chooses the runner of all sessions that have no choice of their own: `laptop`, or `laptop/api` for one of its workspaces. */
export async function chooseRunner(runner: string): Promise<Runner> {
  const used = await answer(api.PUT("/api/v1/me/runner", { body: { runner } }));
  await Promise.all(["settings", "runners"].map((topic) => queries.invalidateQueries({ queryKey: [topic] })));
  return used;
}

/** Pins a session to a runner. */
export async function pinSession(session: string, runner: string): Promise<void> {
  await answer(api.PUT("/api/v1/sessions/{id}/runner", { params: { path: { id: session } }, body: { runner } }));
  await Promise.all(["settings", "sessions"].map((topic) => queries.invalidateQueries({ queryKey: [topic] })));
}

/** Lets a session work on the person's active runner. */
export async function unpinSession(session: string): Promise<void> {
  await answer(api.DELETE("/api/v1/sessions/{id}/runner", { params: { path: { id: session } } }));
  await Promise.all(["settings", "sessions"].map((topic) => queries.invalidateQueries({ queryKey: [topic] })));
}
