import type { Translation } from "../translation";
import type { inbox as english } from "../en/inbox";

export const inbox: Translation<typeof english> = {
};
