import { useQuery } from "@tanstack/react-query";
import { runnersQuery } from "@/api/runners";
import { sessionQuery } from "@/api/sessions";
import { settingOf, settingsQuery } from "@/api/settings";
import type { Runner, Setting } from "@/api/schema";
import { stateOf as runnerStateOf } from "@/pages/runners/order";
import type { DotState } from "@/ui/Dot";
import { useChoices } from "./choices";

/** The state of the runner of a place. */
export type PlaceState = "online" | "away" | "locked" | "refused" | "removed" | "unknown";

/** Where the tools of a chat run. */
export interface ChatPlace {
  /** The runner's name, alone or with `/WORKSPACE`, as it is chosen. */
  value: string;
  /** The runner's name. */
  name: string;
  state: PlaceState;
  /** When the runner was last connected. */
  since?: string | undefined;
  /** The folder as people write it: `~/src/app`. Empty where it is not known. */
  folder: string;
  /** What keeps commands apart there: `none`, or properties joined by `+`. It counts only where an admin or the operator has granted it. */
  isolation: string;
  /** True if this chat has a choice of its own. */
  own: boolean;
  runner?: Runner | undefined;
}

/**
 * Where the tools of a session run from its next message on, or of a chat that has not begun. `null` for no runner;
 * undefined until the answers are there.
 */
export function usePlace(session: string | undefined): ChatPlace | null | undefined {
  const choices = useChoices();
  const settings = useQuery(settingsQuery(session)).data;
  const runners = useQuery(runnersQuery).data?.runners;
  const directory = useQuery({ ...sessionQuery(session ?? ""), enabled: session !== undefined }).data?.directory;
  if (!settings || !runners) return undefined;
  const setting = settingOf(settings, "runner");
  const chosen = session ? undefined : choices.runner;
  const value = chosen ?? setting?.value;
  if (!value) return null;
  const [name = value, workspace] = value.split("/");
  const runner = runners.find((one) => one.name === name);
  return {
    value,
    name,
    state: stateOf(runner, chosen ? undefined : setting),
    since: runner?.last_seen ?? undefined,
    folder: folderOf(runner, workspace, (session ? directory : choices.directory) ?? ""),
    isolation: runner ? isolationOf(runner, workspace) : "none",
    own: session ? setting?.set_by === "session" : chosen !== undefined,
    runner,
  };
}

function stateOf(runner: Runner | undefined, setting: Setting | undefined): PlaceState {
  if (!runner) return setting?.note ? "removed" : "unknown";
  return runnerState(runner);
}

/** The state of a runner, to choose it: one that was never connected is away. */
export function runnerState(runner: Runner): "online" | "away" | "locked" | "refused" {
  const state = runnerStateOf(runner);
  return state === "never" ? "away" : state;
}

/** The sign of a place's state. */
export const PLACE_DOTS: Record<PlaceState, DotState> = { online: "good", away: "warn", locked: "bad", refused: "bad", removed: "off", unknown: "off" };

/** The isolation of a runner's workspace, as far as it was granted. */
export function isolationOf(runner: Runner, workspace?: string): string {
  if (!runner.isolation_believed) return "none";
  return runner.sandboxes?.find((one) => one.name === workspace)?.isolation ?? runner.isolation;
}

function folderOf(runner: Runner | undefined, workspace: string | undefined, directory: string): string {
  const root = runner?.sandboxes?.find((one) => one.name === workspace)?.root ?? runner?.workspace ?? "";
  return shortened(directory ? `${root.replace(/\/$/, "")}/${directory}` : root);
}

/** A path with `~` for the home folder of a person. */
export function shortened(path: string): string {
  return path.replace(/^\/(?:home|Users)\/[^/]+(?=\/|$)/, "~").replace(/^\/root(?=\/|$)/, "~");
}
