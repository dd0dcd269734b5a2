import type { Translation } from "../translation";
import type { chat as english } from "../en/chat";

export const chat: Translation<typeof english> = {
};
