/** Words of this area. */
export const transcript = {
} as const;
