/** Words of this area. */
export const admin = {
} as const;
