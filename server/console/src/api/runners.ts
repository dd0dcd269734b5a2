import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import { queries } from "./query";
import type { Runner, Runners } from "./schema";

/** The runners that the person may choose, by name. */
export const runnersQuery = queryOptions({
  queryKey: ["runners", "all"],
  queryFn: (): Promise<Runners> => answer(api.GET("/api/v1/runners", { params: { query: { limit: 500 } } })),
});

/** Chooses where the person's tools run from the next message on: a runner's id or name, alone or with `/WORKSPACE`. */
export async function chooseRunner(place: string): Promise<Runner> {
  const chosen = await answer(api.PUT("/api/v1/me/runner", { body: { runner: place } }));
  await Promise.all(["runners", "settings"].map((topic) => queries.invalidateQueries({ queryKey: [topic] })));
  return chosen;
}
