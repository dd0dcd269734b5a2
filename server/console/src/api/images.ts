import { answer, api } from "./client";
import type { SessionImage } from "./schema";

/** The most bytes of an image. */
export const IMAGE_BYTES = 5 * 1024 * 1024;

/** The formats of images that the server takes, and that a page may show as what they are. */
export const IMAGE_TYPES: readonly string[] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** Gives an image to a session, for a message that names its digest. Given again, it is still one image. */
export function addImage(session: string, image: Blob): Promise<SessionImage> {
  return answer(
    api.POST("/api/v1/sessions/{id}/images", {
      params: { path: { id: session } },
      headers: { "Content-Type": "application/octet-stream" },
      body: image as unknown as string,
      bodySerializer: () => image,
    }),
  );
}

/** The address of an image's bytes. */
export function imageAddress(session: string, digest: string): string {
  return `/api/v1/sessions/${encodeURIComponent(session)}/images/${encodeURIComponent(digest)}`;
}
