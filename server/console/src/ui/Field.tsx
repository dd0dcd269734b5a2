import { type InputHTMLAttributes, type KeyboardEvent, type ReactNode, type Ref, type SelectHTMLAttributes, type TextareaHTMLAttributes, useId } from "react";
import { cx } from "./class";

const BOX =
  "touchable w-full rounded-control border border-line-strong bg-surface px-2.5 text-body text-ink placeholder:text-faint disabled:opacity-60 aria-invalid:border-bad";

interface FieldProps {
  label: string;
  /** One sentence below the control. */
  hint?: ReactNode;
  error?: string | undefined;
  className?: string | undefined;
  /** The control; it gets these, so that its label, hint and error are read with it. */
  children: (control: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean | undefined }) => ReactNode;
}

/** A control with its label, its hint and its error. */
export function Field({ label, hint, error, className, children }: FieldProps) {
  const id = useId();
  const described = error ? `${id}-error` : hint ? `${id}-hint` : undefined;
  return (
    <div className={cx("flex flex-col gap-1", className)}>
      <label htmlFor={id} className="text-dense font-medium">
        {label}
      </label>
      {children({ id, "aria-describedby": described, "aria-invalid": error ? true : undefined })}
      {error ? (
        <p id={`${id}-error`} className="text-meta text-bad">
          {error}
        </p>
      ) : (
        hint && (
          <p id={`${id}-hint`} className="text-meta text-muted">
            {hint}
          </p>
        )
      )}
    </div>
  );
}

/** A line of text. */
export function Input({ className, ...rest }: InputHTMLAttributes<HTMLInputElement> & { ref?: Ref<HTMLInputElement> }) {
  // A dialog looks for the mark: React cannot focus what is not shown yet, and writes no attribute of its own.
  return <input type="text" autoComplete="off" data-autofocus={rest.autoFocus || undefined} className={cx(BOX, "h-8", className)} {...rest} />;
}

/** Several lines of text. Ctrl or ⌘ with Enter submits its form; with `enterSubmits` Enter alone does, and Shift with Enter begins a line. */
export function Textarea({ className, enterSubmits = false, ...rest }: TextareaHTMLAttributes<HTMLTextAreaElement> & { enterSubmits?: boolean; ref?: Ref<HTMLTextAreaElement> }) {
  const hear = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    // An input method's keys are its own; some browsers tell its last one only by this code.
    if (event.key !== "Enter" || event.nativeEvent.isComposing || event.keyCode === 229) return;
    // On a touch screen Enter begins a line: its keyboard has no other key for that.
    const alone = enterSubmits && !event.shiftKey && !matchMedia("(pointer: coarse)").matches;
    if (!alone && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    // As Enter in a single line does: a form whose button is disabled is not submitted.
    [...(event.currentTarget.form?.elements ?? [])].find((one): one is HTMLButtonElement => one instanceof HTMLButtonElement && one.type === "submit")?.click();
  };
  return <textarea data-autofocus={rest.autoFocus || undefined} onKeyDown={hear} className={cx(BOX, "min-h-20 py-1.5", className)} {...rest} />;
}

/** One of a few: the browser's own list, which works everywhere. */
export function Select({ className, ...rest }: SelectHTMLAttributes<HTMLSelectElement>) {
  return <select className={cx(BOX, "h-8 pr-7", className)} {...rest} />;
}

/** On or off. */
export function Switch({ checked, onChange, label, disabled }: { checked: boolean; onChange: (checked: boolean) => void; label: string; disabled?: boolean }) {
  return (
    <button
      type="button"
      role="switch"
      aria-checked={checked}
      aria-label={label}
      disabled={disabled}
      onClick={() => onChange(!checked)}
      className="touchable inline-flex shrink-0 items-center justify-center rounded-full disabled:opacity-55"
    >
      <span className={cx("flex h-5 w-9 items-center rounded-full border transition-colors duration-100", checked ? "border-accent bg-accent" : "border-line-strong bg-sunken")}>
        <span className={cx("size-3.5 rounded-full transition-transform duration-100", checked ? "translate-x-[18px] bg-on-accent" : "translate-x-0.5 bg-line-strong")} />
      </span>
    </button>
  );
}
