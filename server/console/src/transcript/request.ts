/** The arguments of a tool call, parsed once, for display. */

/** The thing that a call asks for. Commands, paths and patterns show each of their letters. */
export type Request =
  | { readonly kind: "shell"; readonly command: string; readonly directory: string; readonly background: boolean }
  /** `first` is the first line, where not all of the file is wanted. */
  | { readonly kind: "read"; readonly path: string; readonly first: number | null }
  | { readonly kind: "write"; readonly path: string; readonly content: string }
  | { readonly kind: "edit"; readonly path: string; readonly old: string; readonly new: string; readonly every: boolean }
  | { readonly kind: "list"; readonly path: string }
  | { readonly kind: "glob"; readonly pattern: string; readonly path: string }
  | { readonly kind: "grep"; readonly pattern: string; readonly path: string; readonly files: string }
  | { readonly kind: "fetch"; readonly url: string }
  | { readonly kind: "search"; readonly query: string }
  | { readonly kind: "todo" }
  /** Something of a background command; `task` is absent for all of them. */
  | { readonly kind: "task"; readonly task: number | null }
  | { readonly kind: "ask"; readonly question: string; readonly choices: readonly string[] }
  | { readonly kind: "plan"; readonly plan: string }
  /** Another tool, or arguments without the expected form: the argument that tells one call from another. */
  | { readonly kind: "other"; readonly about: string };
