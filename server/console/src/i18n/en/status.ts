/** Words of this area. */
export const status = {
} as const;
