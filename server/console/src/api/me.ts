import { queryOptions, useQuery } from "@tanstack/react-query";
import { answer, api } from "./client";
import type { Me, RoleName } from "./schema";

/** The person who is signed in, with the runner and the model that the person works with. */
export const meQuery = queryOptions({
  queryKey: ["settings", "me"],
  queryFn: (): Promise<Me> => answer(api.GET("/api/v1/me")),
});

/** See {@link meQuery}; undefined until the first answer. */
export function useMe(): Me | undefined {
  return useQuery(meQuery).data;
}

/** The roles in their order: each has the rights of those before it. */
export const ROLES: readonly RoleName[] = ["viewer", "member", "admin", "owner"];

/** True if the person is an admin or the owner, as far as the page knows. The server decides. */
export function isAdmin(me: Me | undefined): boolean {
  return me !== undefined && ROLES.findIndex((role) => role === me.user.role) >= ROLES.indexOf("admin");
}

/** True if the person may have work done, as far as the page knows: a viewer only looks. The server decides. */
export function mayWork(me: Me | undefined): boolean {
  return me?.user.role !== "viewer";
}

/** True if the person is the owner, as far as the page knows. The server decides. */
export function isOwner(me: Me | undefined): boolean {
  return me?.user.role === "owner";
}
