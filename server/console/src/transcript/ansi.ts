/** The output of a program as a terminal shows it, bounded and harmless. */

/** One line of a program's output. */
export type OutputLine =
  | { readonly kind: "text"; readonly spans: readonly Span[] }
  /** Bytes that never came. */
  | { readonly kind: "gap"; readonly bytes: number };

/** A piece of a line in one style. */
export interface Span {
  readonly text: string;
  /** Class names such as `ansi-red ansi-bold`, see {@link Ansi}; empty for plain text. */
  readonly classes: string;
}
