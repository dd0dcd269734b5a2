import { X } from "lucide-react";
import { useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "./Button";
import { cx } from "./class";
import { reasonOf } from "./failure";

interface Toast {
  id: number;
  text: string;
  bad: boolean;
}

const SHOWN_MS = 5000;
/** More than these at once help nobody. */
const AT_MOST = 3;
let toasts: readonly Toast[] = [];
let next = 1;
const listeners = new Set<() => void>();

function change(changed: readonly Toast[]): void {
  toasts = changed;
  for (const listener of listeners) listener();
}

function dismiss(id: number): void {
  change(toasts.filter((toast) => toast.id !== id));
}

/** Says in a corner that something is done. */
export function say(text: string, bad = false): void {
  const id = next++;
  change([...toasts, { id, text, bad }].slice(-AT_MOST));
  // A failure stays until it was read.
  if (!bad) setTimeout(() => dismiss(id), SHOWN_MS);
}

/** Says in a corner that something failed, and why. */
export function sayFailed(what: string, error: unknown): void {
  say(`${what} ${reasonOf(error)}`, true);
}

/** Stands once in the page. */
export function Toasts() {
  const { t } = useTranslation("common");
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div role="status" className="pointer-events-none fixed inset-x-4 bottom-20 z-50 flex flex-col items-end gap-2 md:bottom-4">
      {shown.map((toast) => (
        <div
          key={toast.id}
          className={cx(
            "fade-in pointer-events-auto flex max-w-md items-start gap-2 rounded-card border bg-raised py-2 pr-2 pl-4 text-dense shadow-float",
            toast.bad ? "border-bad" : "border-line",
          )}
        >
          <p className="min-w-0 flex-1 py-1 wrap-anywhere">{toast.text}</p>
          <IconButton size="sm" icon={X} label={t("close")} onClick={() => dismiss(toast.id)} />
        </div>
      ))}
    </div>
  );
}
