import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import type { Runners } from "./schema";

/** The runners that the person may choose, by name. */
export const runnersQuery = queryOptions({
  queryKey: ["runners", "all"],
  queryFn: (): Promise<Runners> => answer(api.GET("/api/v1/runners", { params: { query: { limit: 500 } } })),
});

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
