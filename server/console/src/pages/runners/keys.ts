import { type RefObject, useEffect } from "react";
import { isTyping } from "@/frame/shortcuts";

/** The attribute of what `j` and `k` move to in a row. */
export const ROW = "data-row";

/**
 * The keys of a page with rows: `j` and `k` move the focus between them, `/` goes to the search.
 *
 * Enter is the browser's own: what has the focus is a button.
 */
export function useRowKeys(search: RefObject<HTMLInputElement | null>): void {
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event.target)) return;
      if (document.querySelector("dialog[open], [role=menu]")) return;
      if (event.key === "/" && search.current) search.current.focus();
      else if (event.key === "j") move(1);
      else if (event.key === "k") move(-1);
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", hear);
    return () => document.removeEventListener("keydown", hear);
  }, [search]);
}

function move(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>(`main [${ROW}]`)];
  const row = document.activeElement?.closest("li")?.querySelector<HTMLElement>(`[${ROW}]`);
  const at = row ? rows.indexOf(row) : -1;
  rows[at === -1 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1)]?.focus();
}
