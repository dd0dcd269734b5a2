import type { Runner } from "@/api/schema";

/** The state of a runner in one word. A runner that drains is online or away all the same. */
export type RunnerState = "online" | "refused" | "locked" | "away" | "never";

/** The order of the states in a list that is sorted by them. */
const STATES: readonly RunnerState[] = ["online", "refused", "locked", "away", "never"];

/** The ways to sort runners. */
export type RunnerSort = "name" | "state";

/** The state of a runner. */
export function stateOf(runner: Runner): RunnerState {
  if (runner.locked) return "locked";
  if (runner.online) return "online";
  if (runner.refused) return "refused";
  return runner.last_seen ? "away" : "never";
}

/** The runners in which each word of a text occurs: in their names, owners, hosts, systems, versions or labels. */
export function filterRunners(runners: readonly Runner[], text: string): Runner[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [...runners];
  return runners.filter((runner) => {
    const own = searched(runner);
    return words.every((word) => own.includes(word));
  });
}

function searched(runner: Runner): string {
  const labels = Object.entries(runner.labels ?? {}).map(([key, value]) => `${key}=${value}`);
  const folders = (runner.sandboxes ?? []).flatMap((workspace) => [workspace.name, workspace.root]);
  return [runner.name, runner.owner ?? "", runner.hostname, runner.platform, runner.version, runner.isolation, stateOf(runner), ...labels, ...folders].join("\n").toLowerCase();
}

/** The runners in an order: by name, or by state with the last seen first. */
export function sortRunners(runners: readonly Runner[], sort: RunnerSort): Runner[] {
  const byName = (a: Runner, b: Runner) => a.name.localeCompare(b.name, "en", { numeric: true });
  if (sort === "name") return [...runners].sort(byName);
  const place = (runner: Runner) => STATES.indexOf(stateOf(runner));
  const seen = (runner: Runner) => (runner.online || !runner.last_seen ? 0 : Date.parse(runner.last_seen));
  return [...runners].sort((a, b) => place(a) - place(b) || seen(b) - seen(a) || byName(a, b));
}

/** A place as people write it: `laptop`, or `laptop/api`. */
export function placeName(runner: string, workspace: string | null | undefined): string {
  return workspace ? `${runner}/${workspace}` : runner;
}
