import type { Translation } from "../translation";
import type { files as english } from "../en/files";

export const files: Translation<typeof english> = {
};
