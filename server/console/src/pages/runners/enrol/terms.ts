import type { CreateJoinToken } from "@/api/schema";
import { isName } from "../name";
import { parseLabels, serverAddress } from "./line";

/** What the form of a join token holds. */
export interface Terms {
  name: string;
  /** Seconds. */
  validFor: number;
  fleet: boolean;
  /** The number of machines of a fleet, as it was typed. */
  uses: string;
  ephemeral: boolean;
  labels: string;
  from: string;
  /** The server's address as the machine reaches it. */
  server: string;
  /** True if the server made its certificate itself. */
  ownCertificate: boolean;
}

/** The validities that are offered, in seconds. */
export const VALIDITIES = [600, 3600, 86_400, 604_800] as const;

/** The most machines of a fleet that enrol with one token. */
export const FLEET_AT_MOST = 1000;

/** The terms with which the form begins. `origin` is the page's own. */
export function firstTerms(origin: string): Terms {
  return { name: "", validFor: 600, fleet: false, uses: "10", ephemeral: false, labels: "", from: "", server: origin, ownCertificate: false };
}

/** A field that is wrong. */
export type Wrong = "name" | "taken" | "uses" | "labels" | "server";

/** The fields that are wrong. `names` are those that runners have. */
export function wrongOf(terms: Terms, names: readonly string[]): Wrong[] {
  const wrong: Wrong[] = [];
  if (!terms.fleet && terms.name !== "" && !isName(terms.name)) wrong.push("name");
  if (!terms.fleet && names.includes(terms.name)) wrong.push("taken");
  const uses = Number(terms.uses);
  if (terms.fleet && !(Number.isInteger(uses) && uses >= 2 && uses <= FLEET_AT_MOST)) wrong.push("uses");
  if (parseLabels(terms.labels) === undefined) wrong.push("labels");
  if (serverAddress(terms.server) === undefined) wrong.push("server");
  return wrong;
}

/** The terms as the server takes them. */
export function requestOf(terms: Terms): CreateJoinToken {
  const labels = parseLabels(terms.labels) ?? {};
  const from = terms.from.trim();
  return {
    name: terms.fleet ? "" : terms.name,
    valid_for_s: terms.validFor,
    ...(terms.fleet ? { uses: Number(terms.uses) } : {}),
    ...(terms.ephemeral ? { ephemeral: true } : {}),
    ...(Object.keys(labels).length > 0 ? { labels } : {}),
    ...(from ? { from } : {}),
  };
}
