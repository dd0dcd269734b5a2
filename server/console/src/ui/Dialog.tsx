import { X } from "lucide-react";
import { type ReactNode, useId, useLayoutEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "./Button";
import { cx } from "./class";
import { FloatIn } from "./float";

interface DialogProps {
  open: boolean;
  onClose: () => void;
  title: string;
  /** One sentence below the title. */
  description?: ReactNode;
  children?: ReactNode;
  /** The buttons, the primary one last. */
  actions?: ReactNode;
  /** `sheet` comes from the side, or from below on a phone. */
  shape?: "dialog" | "sheet";
  wide?: boolean;
  /** False if a click beside it must not close it: something would be lost. */
  dismissable?: boolean;
}

/**
 * A modal dialog: the browser's own, so that focus stays in it, Esc closes it, and the page behind cannot be reached.
 *
 * On a phone it is a sheet from below.
 */
export function Dialog({ open, onClose, title, description, children, actions, shape = "dialog", wide, dismissable = true }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const [element, setElement] = useState<HTMLDialogElement | null>(null);
  const heading = useId();
  const { t } = useTranslation("common");
  // Before what comes in its place takes the focus: that would be lost otherwise.
  useLayoutEffect(() => {
    const dialog = ref.current;
    if (!dialog || !open) return;
    const before = document.activeElement;
    if (!dialog.open) dialog.showModal();
    setElement(dialog);
    // Without a field that asks for it the dialog itself has the focus: not the first button, which is “Close”.
    (dialog.querySelector<HTMLElement>("[data-autofocus=true]") ?? dialog).focus();
    return () => {
      dialog.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, [open]);
  if (!open) return null;
  return (
    <dialog
      ref={ref}
      tabIndex={-1}
      aria-labelledby={heading}
      onKeyDown={(event) => {
        // A tooltip takes Esc for itself, and then the browser sends no `cancel`.
        if (event.key !== "Escape" || !event.defaultPrevented) return;
        event.stopPropagation();
        onClose();
      }}
      onCancel={(event) => {
        // That of a dialog within this one, or of a file input, arrives here as well.
        if (event.target !== ref.current) return;
        event.preventDefault();
        onClose();
      }}
      onPointerDown={(event) => {
        if (dismissable && event.target === ref.current) onClose();
      }}
      className={cx(
        "fade-in fixed m-0 max-h-[92dvh] w-full max-w-none flex-col overflow-hidden border border-line bg-raised p-0 text-ink shadow-float outline-none open:flex",
        "max-md:inset-x-0 max-md:top-auto max-md:bottom-0 max-md:rounded-t-card",
        shape === "sheet"
          ? "md:inset-y-0 md:right-0 md:left-auto md:h-dvh md:max-h-none md:w-[28rem]"
          : cx("md:inset-x-0 md:top-[10dvh] md:mx-auto md:max-h-[80dvh] md:rounded-card", wide ? "md:w-[44rem]" : "md:w-[30rem]"),
      )}
    >
      <FloatIn value={element}>
        <header className="flex items-start gap-2 px-6 pt-4 pb-2">
          <div className="min-w-0 flex-1">
            <h2 id={heading} className="text-body font-semibold">
              {title}
            </h2>
            {description && <p className="mt-1 text-dense text-muted">{description}</p>}
          </div>
          <IconButton icon={X} label={t("close")} onClick={onClose} className="-mr-2 -mt-1" />
        </header>
        <div className="min-h-0 flex-1 overflow-y-auto px-6 pt-1 pb-4">
          {children}
        </div>
        {actions && <footer className="flex flex-wrap justify-end gap-2 border-t border-line px-6 py-3">{actions}</footer>}
      </FloatIn>
    </dialog>
  );
}
