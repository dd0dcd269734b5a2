/** Words of this area. */
export const usage = {
} as const;
