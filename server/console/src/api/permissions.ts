import { queryOptions } from "@tanstack/react-query";
import { answer, api, idempotencyKey } from "./client";
import { queries } from "./query";
import type { AddPermissionRule, PermissionRule, PermissionRules, PermissionVerdict, ProposedRules, TestPermission, TrustedFile, TrustProject } from "./schema";

/** The rules that count for the person's agents: the operator's, the tenant's, the person's own, those of trusted files. */
export const permissionsQuery = queryOptions({
  queryKey: ["permissions", "rules"],
  queryFn: (): Promise<PermissionRules> => answer(api.GET("/api/v1/permissions")),
});

/** The rules that a project's file proposes, as the last turn of a session found it. */
export function proposedRulesQuery(session: string) {
  return queryOptions({
    queryKey: ["permissions", "proposed", session],
    queryFn: (): Promise<ProposedRules> => answer(api.GET("/api/v1/sessions/{id}/permissions", { params: { path: { id: session } } })),
  });
}

async function changed(): Promise<void> {
  await queries.invalidateQueries({ queryKey: ["permissions"] });
}

/** Sets a rule. */
export async function addRule(body: AddPermissionRule): Promise<PermissionRule> {
  const added = await answer(api.POST("/api/v1/permissions", { body, params: { header: { "Idempotency-Key": idempotencyKey() } } }));
  await changed();
  return added;
}

/** Removes a rule. */
export async function removeRule(id: string): Promise<void> {
  await answer(api.DELETE("/api/v1/permissions/{id}", { params: { path: { id } } }));
  await changed();
}

/** Tells what would be decided about something that an agent might do. Nothing is done. */
export function testDeed(body: TestPermission): Promise<PermissionVerdict> {
  return answer(api.POST("/api/v1/permissions/test", { body }));
}

/** Trusts this very text of a project's file. */
export async function trustFile(body: TrustProject): Promise<TrustedFile> {
  const trusted = await answer(api.POST("/api/v1/permissions/projects", { body, params: { header: { "Idempotency-Key": idempotencyKey() } } }));
  await changed();
  return trusted;
}

/** Trusts a project's file no more. */
export async function untrustFile(id: string): Promise<void> {
  await answer(api.DELETE("/api/v1/permissions/projects/{id}", { params: { path: { id } } }));
  await changed();
}
