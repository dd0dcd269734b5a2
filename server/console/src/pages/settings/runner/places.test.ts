import { describe, expect, it } from "vitest";
import type { Me, Runner, Workspace } from "@/api/schema";
import { foundIn, placesOf } from "./places";

function workspace(name: string): Workspace {
  return { id: `sbx_${name}`, name, root: `/srv/${name}`, isolation: "none" };
}

function runner(name: string, sandboxes: Workspace[], more: Partial<Runner> = {}): Runner {
  return { id: `run_${name}`, name, hostname: name, isolation: "none", online: true, active: false, platform: "linux/x86_64", version: "1", workspace: `/home/${name}`, owner: "ann", sandboxes, ...more };
}

function me(active: Partial<Me>): Me {
  return { user: { id: "usr_1", name: "ann", role: "member" }, tenant: "home", model: { name: "m", practice: false }, ...active };
}

const laptop = runner("laptop", [workspace("api"), workspace("web")]);
const vm = runner("vm", [workspace("main")]);
const pool = runner("pool", [], { isolation_believed: true, pool: { backend: "docker", isolation: "network+file_writes", templates: ["default"] } });

describe("places to choose", () => {
  it("are workspaces where a runner has several, and runners else", () => {
    const places = placesOf([laptop, vm, pool], undefined);
    expect(places.map((place) => [place.choice, place.name, place.folder, place.isolation])).toEqual([
      ["run_laptop/api", "laptop/api", "/srv/api", "none"],
      ["run_laptop/web", "laptop/web", "/srv/web", "none"],
      ["run_vm", "vm", "/srv/main", "none"],
      ["run_pool", "pool", undefined, "network+file_writes"],
    ]);
    expect(placesOf([{ ...pool, isolation_believed: false }], undefined)[0]?.isolation).toBe("none");
  });

  it("mark the one in use: the workspace that was chosen, or the first one", () => {
    const inUse = (active: Partial<Me>) => placesOf([laptop, vm], me(active)).filter((place) => place.inUse).map((place) => place.name);
    expect(inUse({ active_runner: "run_laptop", active_workspace: "web" })).toEqual(["laptop/web"]);
    expect(inUse({ active_runner: "run_laptop" })).toEqual(["laptop/api"]);
    expect(inUse({ active_runner: "run_vm" })).toEqual(["vm"]);
    expect(inUse({})).toEqual([]);
  });

  it("are found by name, folder and owner", () => {
    const places = placesOf([laptop, vm, pool], undefined);
    expect(foundIn(places, " WEB ").map((place) => place.name)).toEqual(["laptop/web"]);
    expect(foundIn(places, "ann")).toHaveLength(4);
    expect(foundIn(places, "")).toHaveLength(4);
  });
});
