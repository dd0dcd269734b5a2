/** The changes of files in a session: what its edits and writes did. */

/** One change of a file by a call. */
export type Change = {
  /** The id of the call's item. */
  readonly item: string;
  readonly at: number;
  /** True if its turn was gone back from; the file may or may not have been put back. */
  readonly rewound: boolean;
} & (
  | {
      readonly deed: "edited";
      readonly old: string;
      readonly new: string;
      /** True if every occurrence was meant. */
      readonly every: boolean;
      /** The line of the file at which the text began, from 1; `null` if it is not known. */
      readonly line: number | null;
    }
  | {
      readonly deed: "written";
      readonly content: string;
      /** True if there was no such file before. */
      readonly made: boolean;
    }
);
