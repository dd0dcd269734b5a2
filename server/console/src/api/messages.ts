import { answer, api } from "./client";
import type { MessageAccepted, SendMessage } from "./schema";

/** The most bytes of a message's text, in UTF-8. */
export const MESSAGE_BYTES = 262_144;

/** The most images of a message. */
export const MESSAGE_IMAGES = 20;

/** Sends a message. Sent again with the same `client_id`, it is still one message. */
export function sendMessage(session: string, body: SendMessage): Promise<MessageAccepted> {
  return answer(api.POST("/api/v1/sessions/{id}/messages", { params: { path: { id: session } }, body }));
}
