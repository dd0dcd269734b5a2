import type { Translation } from "../translation";
import type { usage as english } from "../en/usage";

export const usage: Translation<typeof english> = {
};
