import type { Translation } from "../translation";
import type { transcript as english } from "../en/transcript";

export const transcript: Translation<typeof english> = {
};
