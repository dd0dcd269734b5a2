/** Colours code by its grammar. Only `highlight.ts` loads this: the grammars are large. */
import { common, createLowlight } from "lowlight";
import type { CodeSpan } from "./highlight";

const lowlight = createLowlight(common);

/** The five colours of the console for the many kinds of the grammars. */
const LOOKS: Readonly<Record<string, string>> = {
  "hljs-keyword": "code-keyword",
  "hljs-literal": "code-keyword",
  "hljs-selector-tag": "code-keyword",
  "hljs-operator": "",
  "hljs-string": "code-string",
  "hljs-regexp": "code-string",
  "hljs-char": "code-string",
  "hljs-addition": "code-string",
  "hljs-number": "code-number",
  "hljs-symbol": "code-number",
  "hljs-variable": "code-number",
  "hljs-deletion": "code-number",
  "hljs-comment": "code-comment",
  "hljs-quote": "code-comment",
  "hljs-doctag": "code-comment",
  "hljs-meta": "code-comment",
  "hljs-title": "code-name",
  "hljs-name": "code-name",
  "hljs-section": "code-name",
  "hljs-built_in": "code-name",
  "hljs-type": "code-name",
  "hljs-attr": "code-name",
  "hljs-attribute": "code-name",
  "hljs-property": "code-name",
  "hljs-tag": "",
};

type Tree = ReturnType<typeof lowlight.highlight>;
type Node = Tree["children"][number];

/** The lines of a code with their colours; undefined for a language without a grammar. */
export function highlight(text: string, language: string): CodeSpan[][] | undefined {
  if (!lowlight.registered(language)) return undefined;
  const lines: CodeSpan[][] = [[]];
  walk(lowlight.highlight(language, text), "", lines);
  return lines;
}

function walk(node: Tree | Node, look: string, lines: CodeSpan[][]): void {
  if (node.type === "text") {
    node.value.split("\n").forEach((text, index) => {
      if (index > 0) lines.push([]);
      if (text) lines.at(-1)?.push({ text, look });
    });
    return;
  }
  if (!("children" in node)) return;
  let own = look;
  if (node.type === "element") {
    const names = node.properties["className"];
    const known = Array.isArray(names) ? names.map((name) => LOOKS[String(name)]).find((name) => name !== undefined) : undefined;
    own = known ?? look;
  }
  for (const child of node.children) walk(child, own, lines);
}
