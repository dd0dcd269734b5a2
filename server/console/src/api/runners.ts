import { queryOptions, useQuery } from "@tanstack/react-query";
import { answer, api } from "./client";
import { queries } from "./query";
import type { ChangeRunner, Operation, Operations, Runner, Runners } from "./schema";

/** Runners that are asked for at once. */
const PAGE = 500;

/** Pages of runners that are asked for at most: nobody reads more than 2,000 rows. */
const PAGES = 4;

/** The runners that the person may choose, by name. */
export interface AllRunners {
  runners: Runner[];
  /** True if there are more than the console asks for. */
  cut: boolean;
}

async function allRunners(): Promise<AllRunners> {
  const runners: Runner[] = [];
  let after: string | undefined;
  for (let page = 0; page < PAGES; page += 1) {
    const query = { limit: PAGE, ...(after ? { after } : {}) };
    const found: Runners = await answer(api.GET("/api/v1/runners", { params: { query } }));
    runners.push(...found.runners);
    after = found.next ?? undefined;
    if (!after) break;
  }
  return { runners, cut: after !== undefined };
}

/** See {@link AllRunners}. */
export const runnersQuery = queryOptions({ queryKey: ["runners", "all"], queryFn: allRunners });

/** The runners that the person may choose; undefined until the first answer. */
export function useRunners(): Runner[] | undefined {
  return useQuery(runnersQuery).data?.runners;
}

/** The open operations on a runner that the person may see, the newest first: at most 100. */
export function runningQuery(runner: string) {
  return queryOptions({
    queryKey: ["operations", "running", runner],
    queryFn: async (): Promise<Operation[]> => {
      const query = { state: "open" as const, runner, limit: 100 };
      const found: Operations = await answer(api.GET("/api/v1/operations", { params: { query } }));
      return found.operations;
    },
  });
}

/** Asks again for what a change of runners can have changed: the list, and what the person works with. */
async function changed(): Promise<void> {
  await Promise.all([queries.invalidateQueries({ queryKey: ["runners"] }), queries.invalidateQueries({ queryKey: ["settings"] })]);
}

async function after<T>(request: Promise<T>): Promise<T> {
  const done = await request;
  await changed();
  return done;
}

/** Chooses where the person's tools run from the next message on: a runner's id or name, alone or with `/WORKSPACE`. */
export function chooseRunner(place: string): Promise<Runner> {
  return after(answer(api.PUT("/api/v1/me/runner", { body: { runner: place } })));
}

/** Renames a runner, lets it drain, or gives it work again. */
export function changeRunner(id: string, change: ChangeRunner): Promise<Runner> {
  return after(answer(api.PATCH("/api/v1/runners/{id}", { params: { path: { id } }, body: change })));
}

/** Lets a person, by name or id, or `everyone` use a runner. */
export function shareRunner(id: string, name: string): Promise<Runner> {
  return after(answer(api.POST("/api/v1/runners/{id}/share", { params: { path: { id } }, body: { with: name } })));
}

/** Stops sharing a runner with a person or `everyone`. */
export function unshareRunner(id: string, name: string): Promise<Runner> {
  return after(answer(api.POST("/api/v1/runners/{id}/unshare", { params: { path: { id } }, body: { with: name } })));
}

/** Lets what a runner reports of its isolation count. */
export function trustRunner(id: string): Promise<Runner> {
  return after(answer(api.POST("/api/v1/runners/{id}/trust", { params: { path: { id } } })));
}

/** Lets what a runner reports of its isolation count no longer. */
export function distrustRunner(id: string): Promise<Runner> {
  return after(answer(api.POST("/api/v1/runners/{id}/distrust", { params: { path: { id } } })));
}

/** Makes the person the owner of a runner. */
export function takeRunner(id: string): Promise<Runner> {
  return after(answer(api.POST("/api/v1/runners/{id}/take", { params: { path: { id } } })));
}

/** Removes a runner: it cannot come back without a new token. */
export function removeRunner(id: string): Promise<unknown> {
  return after(answer(api.DELETE("/api/v1/runners/{id}", { params: { path: { id } } })));
}
