/** Words of this area. */
export const inbox = {
} as const;
