import type { Translation } from "../translation";
import type { status as english } from "../en/status";

export const status: Translation<typeof english> = {
};
