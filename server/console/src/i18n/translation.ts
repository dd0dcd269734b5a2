/**
 * The shape of a translation: the same names as the English words. Plural forms that Chinese has not (`_one`) may be
 * absent, so that a name that is missing in one language fails the build.
 */
export type Translation<T> = { [K in keyof T as K extends `${string}_one` ? never : K]: string } & { [K in keyof T as K extends `${string}_one` ? K : never]?: string };
