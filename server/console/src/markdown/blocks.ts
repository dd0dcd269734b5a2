/**
 * The blocks of a Markdown text that grows at its end.
 *
 * A block that another one follows is finished: it is parsed once, and keeps its identity. Only the text from the last
 * block on is parsed again.
 */
import { Lexer, type Token } from "marked";

/** The longest piece of text in which marks such as `*` are looked for, in characters; a longer one is plain. */
const MOST_INLINE = 6000;

/** The longest block that is parsed while it may still grow, in characters; the rest of it waits for its end. */
const MOST_OPEN = 64 * 1024;

/** A block of a text. */
export interface Block {
  /** The place where it begins in the text; its key. */
  readonly at: number;
  readonly token: Token;
  /** True while it may still grow. */
  readonly open: boolean;
}

/** Reads one text, again and again as it grows. */
export class BlockReader {
  #text = "";
  #done: readonly Block[] = [];
  /** The place where the block begins that is not finished. */
  #from = 0;
  #last: { readonly text: string; readonly open: boolean; readonly blocks: readonly Block[] } | null = null;

  /** The blocks of the text. `open` says that more of it may come. */
  read(text: string, open: boolean): readonly Block[] {
    if (this.#last?.text === text && this.#last.open === open) return this.#last.blocks;
    if (!text.startsWith(this.#text)) {
      this.#done = [];
      this.#from = 0;
    }
    this.#text = text;
    const blocks: Block[] = [];
    let at = this.#from;
    for (const token of lex(text.slice(this.#from), open)) {
      if (token.type !== "space") blocks.push({ at, token, open: false });
      at += token.raw.length;
    }
    const last = blocks.pop();
    if (blocks.length > 0 && last) {
      this.#done = [...this.#done, ...blocks];
      this.#from = last.at;
    }
    const all = last ? [...this.#done, { ...last, open }] : this.#done;
    this.#last = { text, open, blocks: all };
    return all;
  }
}

/** The tokens of a text. Never throws: a text that is nested too deeply is plain. */
function lex(text: string, open: boolean): Token[] {
  if (open && text.length > MOST_OPEN && !/^ {0,3}(`{3}|~{3})/.test(text)) return plain(text);
  try {
    const lexer = new Lexer({ gfm: true });
    lexer.blockTokens(text, lexer.tokens);
    for (const { src, tokens } of lexer.inlineQueue) {
      if (src.length > MOST_INLINE) tokens.push({ type: "text", raw: src, text: src });
      else lexer.inlineTokens(src, tokens);
    }
    return lexer.tokens;
  } catch {
    return plain(text);
  }
}

function plain(text: string): Token[] {
  return [{ type: "paragraph", raw: text, text, tokens: [{ type: "text", raw: text, text }] }];
}
