/** Words of this area. */
export const terminal = {
} as const;
