import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import { queries } from "./query";
import type { ChangeSettings, Setting, SettingName, Settings } from "./schema";

/** The values that count for the person, or for one of the person's sessions, with who set them. */
export function settingsQuery(session?: string) {
  return queryOptions({
    queryKey: ["settings", "values", session ?? ""],
    queryFn: (): Promise<Settings> => answer(api.GET("/api/v1/settings", { params: { query: session ? { session } : {} } })),
  });
}

/** The values that count for people of the tenant who have set none: the tenant's, the operator's, and the defaults. */
export const everyonesSettingsQuery = queryOptions({
  queryKey: ["settings", "everyone"],
  queryFn: (): Promise<Settings> => answer(api.GET("/api/v1/settings", { params: { query: { without_own: true } } })),
});

/** One of the values. */
export function settingOf(settings: Settings | undefined, name: SettingName): Setting | undefined {
  return settings?.settings.find((setting) => setting.name === name);
}

/** Changes settings, all of them or none. They count from the next message on. */
export async function changeSettings(body: ChangeSettings): Promise<Settings> {
  const changed = await answer(api.PATCH("/api/v1/settings", { body }));
  await Promise.all(["settings", "sessions", "runners", "models"].map((topic) => queries.invalidateQueries({ queryKey: [topic] })));
  return changed;
}
