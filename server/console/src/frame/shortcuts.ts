import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { openLayer } from "./layers";

/** The time after `g` within which the second key counts, in milliseconds. */
const SECOND_KEY_MS = 1200;

/** True if keys are text for what has the focus. */
export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest(".xterm") !== null);
}

/** The keys that work on every page. A dialog that is open keeps them to itself. */
export function useShortcuts(): void {
  const navigate = useNavigate();
  useEffect(() => {
    let goUntil = 0;
    const places: Record<string, "/inbox" | "/runners" | "/settings" | "/chat"> = { i: "/inbox", r: "/runners", s: "/settings", c: "/chat" };
    const hear = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k" && !(event.target as HTMLElement).closest?.(".xterm")) {
        event.preventDefault();
        openLayer("palette");
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event.target)) return;
      if (document.querySelector("dialog[open], [role=menu]")) return;
      const place = event.timeStamp < goUntil ? places[event.key] : undefined;
      goUntil = 0;
      if (place) void navigate({ to: place });
      else if (event.key === "g") goUntil = event.timeStamp + SECOND_KEY_MS;
      else if (event.key === "n") void navigate({ to: "/chat" });
      else if (event.key === "?") openLayer("help");
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", hear);
    return () => document.removeEventListener("keydown", hear);
  }, [navigate]);
}
