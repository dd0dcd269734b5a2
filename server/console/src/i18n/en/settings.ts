/** Words of this area. */
export const settings = {
} as const;
