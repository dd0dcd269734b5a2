/** Words of this area. */
export const files = {
} as const;
