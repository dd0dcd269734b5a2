import { type RefObject, useEffect } from "react";
import { isTyping } from "@/frame/shortcuts";

interface ListKeys {
  /** The ids of the chats, in the order of the list. */
  ids: readonly string[];
  /** The chat from which j and k go on. */
  current: string | undefined;
  search: RefObject<HTMLInputElement | null>;
  /** Brings a chat into sight and gives it the focus. */
  focus: (id: string) => void;
  select: (id: string) => void;
  clear: () => void;
}

/** The keys of the list: j and k move, / searches, x selects, Esc ends the selection. Enter is the link's own. */
export function useListKeys({ ids, current, search, focus, select, clear }: ListKeys): void {
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event.target)) return;
      if (document.querySelector("dialog[open], [role=menu], [role=listbox]")) return;
      const focused = chatOf(event.target);
      const inList = focused !== undefined;
      // What has the focus beside the list, such as a card with buttons, keeps its letters.
      const free = inList || event.target === document.body || (event.target instanceof HTMLElement && event.target.tabIndex < 0);
      if (event.key === "/") search.current?.focus();
      else if (!free) return;
      else if (event.key === "j" || (inList && event.key === "ArrowDown")) step(1);
      else if (event.key === "k" || (inList && event.key === "ArrowUp")) step(-1);
      else if (event.key === "x" && focused) select(focused);
      else if (event.key === "Escape" && inList) clear();
      else return;
      event.preventDefault();
    };
    const step = (by: number) => {
      const at = current === undefined ? -1 : ids.indexOf(current);
      const next = ids[at < 0 ? 0 : Math.min(Math.max(at + by, 0), ids.length - 1)];
      if (next !== undefined) focus(next);
    };
    document.addEventListener("keydown", hear);
    return () => document.removeEventListener("keydown", hear);
  }, [ids, current, search, focus, select, clear]);
}

/** The chat whose row has the focus. */
function chatOf(target: EventTarget | null): string | undefined {
  return target instanceof HTMLElement ? target.dataset["chat"] : undefined;
}
