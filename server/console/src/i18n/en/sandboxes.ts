/** Words of this area. */
export const sandboxes = {
} as const;
