import type { Translation } from "../translation";
import type { admin as english } from "../en/admin";

export const admin: Translation<typeof english> = {
};
