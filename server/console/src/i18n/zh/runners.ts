import type { Translation } from "../translation";
import type { runners as english } from "../en/runners";

export const runners: Translation<typeof english> = {
};
