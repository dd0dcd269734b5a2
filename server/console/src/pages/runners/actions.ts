import type { Me, Runner } from "@/api/schema";
import { isAdmin } from "@/api/me";

/** What a person may be asked about before it is done to a runner. */
export type Deed = "rename" | "share" | "drain" | "undrain" | "trust" | "distrust" | "take" | "remove";

/** The deeds that a person may do to a runner, as far as the page knows. The server decides. */
export function deedsOf(runner: Runner, me: Me | undefined): Deed[] {
  const admin = isAdmin(me);
  const own = me !== undefined && runner.owner === me.user.name;
  const deeds: Deed[] = [];
  if (me?.user.role === "viewer" || !(admin || own)) return deeds;
  deeds.push("rename", "share", runner.draining ? "undrain" : "drain");
  if (admin) deeds.push(runner.isolation_granted_by ? "distrust" : "trust");
  if (admin && !own) deeds.push("take");
  deeds.push("remove");
  return deeds;
}
