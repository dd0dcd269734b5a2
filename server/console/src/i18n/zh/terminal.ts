import type { Translation } from "../translation";
import type { terminal as english } from "../en/terminal";

export const terminal: Translation<typeof english> = {
};
