import type { Translation } from "../translation";
import type { sandboxes as english } from "../en/sandboxes";

export const sandboxes: Translation<typeof english> = {
};
