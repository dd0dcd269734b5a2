/** Words of this area. */
export const chat = {
} as const;
