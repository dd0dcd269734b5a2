/** Words of this area. */
export const runners = {
} as const;
