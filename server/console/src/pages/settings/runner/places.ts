import type { Me, Runner } from "@/api/schema";

/** A place that can be chosen: a runner, or one of several workspaces of it. */
export interface PlaceToUse {
  /** What the server is told: the runner's id, alone or with a workspace. */
  choice: string;
  /** `laptop`, or `laptop/api`. */
  name: string;
  runner: Runner;
  /** The folder; absent for a runner that makes sandboxes. */
  folder: string | undefined;
  /** What it keeps apart, as far as an admin or the operator has granted it: else `none`. */
  isolation: string;
  /** The reason why nothing can run there. */
  problem: string | undefined;
  inUse: boolean;
}

/** The places of these runners, in their order; the one that the person works on is marked. */
export function placesOf(runners: readonly Runner[], me: Me | undefined): PlaceToUse[] {
  return runners.flatMap((runner) => {
    const isActive = runner.id === me?.active_runner;
    const workspaces = runner.sandboxes ?? [];
    if (runner.pool || workspaces.length < 2) {
      const only = workspaces[0];
      return [
        {
          choice: runner.id,
          name: runner.name,
          runner,
          folder: runner.pool ? undefined : (only?.root ?? (runner.workspace || undefined)),
          isolation: granted(runner, runner.pool?.isolation ?? only?.isolation ?? runner.isolation),
          problem: runner.pool?.problem ?? only?.problem ?? undefined,
          inUse: isActive,
        },
      ];
    }
    return workspaces.map((workspace, index) => ({
      choice: `${runner.id}/${workspace.name}`,
      name: `${runner.name}/${workspace.name}`,
      runner,
      folder: workspace.root,
      isolation: granted(runner, workspace.isolation),
      problem: workspace.problem ?? undefined,
      inUse: isActive && (me?.active_workspace ? me.active_workspace === workspace.name : index === 0),
    }));
  });
}

function granted(runner: Runner, isolation: string): string {
  return runner.isolation_believed ? isolation : "none";
}

/** The places whose name, folder or owner has this text. */
export function foundIn(places: readonly PlaceToUse[], search: string): PlaceToUse[] {
  const wanted = search.trim().toLowerCase();
  return places.filter((place) => [place.name, place.folder, place.runner.owner].some((text) => text?.toLowerCase().includes(wanted)));
}
