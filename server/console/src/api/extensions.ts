import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import { queries } from "./query";
import type { Extension, ExtensionList, Extensions, PutExtension } from "./schema";

/** The extensions that are registered for the person: the tenant's, then the person's own. */
export const extensionsQuery = queryOptions({
  queryKey: ["permissions", "extensions"],
  queryFn: (): Promise<ExtensionList> => answer(api.GET("/api/v1/extensions")),
});

/** An extension with its whole text and its other files. The digest is in the key: another text is another answer. */
export function wholeExtensionQuery({ id, digest }: Pick<Extension, "id" | "digest">) {
  return queryOptions({
    queryKey: ["permissions", "extension", id, digest],
    queryFn: (): Promise<Extension> => answer(api.GET("/api/v1/extensions/{id}", { params: { path: { id } } })),
  });
}

/** The extensions that the last turn of a session found, with the trust as it is now. No hint tells of a new turn. */
export function foundExtensionsQuery(session: string) {
  return queryOptions({
    queryKey: ["permissions", "found", session],
    queryFn: (): Promise<Extensions> => answer(api.GET("/api/v1/sessions/{id}/extensions", { params: { path: { id: session } } })),
    staleTime: 0,
  });
}

async function changed(): Promise<void> {
  await queries.invalidateQueries({ queryKey: ["permissions"] });
}

/** Registers an extension. With `replaces` it takes the place of the one with that digest, and of no other. */
export async function putExtension(body: PutExtension): Promise<Extension> {
  const put = await answer(api.PUT("/api/v1/extensions", { body }));
  await changed();
  return put;
}

/** The bytes at an address of the web, as the server reads them: a `SKILL.md`, or a `.tar.gz`. */
export async function downloadExtension(address: string): Promise<Uint8Array> {
  const { content } = await answer(api.POST("/api/v1/extension-downloads", { body: { address } }));
  return Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
}

/** Removes an extension. */
export async function removeExtension(id: string): Promise<void> {
  await answer(api.DELETE("/api/v1/extensions/{id}", { params: { path: { id } } }));
  await changed();
}

/** Trusts a file on a runner with the text of this digest; without one trusts it no more. */
export async function trustExtension(session: string, path: string, digest: string | undefined): Promise<void> {
  await answer(api.POST("/api/v1/sessions/{id}/extensions", { params: { path: { id: session } }, body: { path, ...(digest ? { digest } : {}) } }));
  await changed();
}
