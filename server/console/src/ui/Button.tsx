import type { LucideIcon } from "lucide-react";
import type { ButtonHTMLAttributes, Ref } from "react";
import { cx } from "./class";
import { Tooltip } from "./Tooltip";

type Look = "primary" | "plain" | "quiet" | "danger";

const LOOKS: Record<Look, string> = {
  primary: "bg-accent text-on-accent hover:bg-accent-hover border-transparent",
  plain: "bg-surface text-ink border-line hover:bg-hover",
  quiet: "border-transparent text-muted hover:bg-hover hover:text-ink",
  danger: "bg-bad-fill text-on-bad border-transparent hover:opacity-90",
};

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look;
  size?: "md" | "sm";
  icon?: LucideIcon;
  /** True while its request is under way: it cannot be pressed twice. */
  busy?: boolean;
  /** As wide as high, for an icon alone. */
  square?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

/** A button with a verb on it. */
export function Button({ look = "plain", size = "md", icon: Icon, busy, square, className, children, disabled, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      disabled={disabled || busy}
      aria-busy={busy || undefined}
      className={cx(
        "touchable inline-flex shrink-0 items-center justify-center gap-1.5 rounded-control border font-medium whitespace-nowrap transition-colors duration-100",
        "disabled:cursor-default disabled:opacity-55",
        size === "md" ? "h-8 text-body" : "h-7 text-dense",
        square ? "aspect-square" : size === "md" ? "px-3" : "px-2",
        LOOKS[look],
        className,
      )}
      {...rest}
    >
      {Icon && <Icon aria-hidden className="size-4" />}
      {children}
    </button>
  );
}

export interface IconButtonProps extends Omit<ButtonProps, "icon" | "square"> {
  icon: LucideIcon;
  /** Its name, for the tooltip and for screen readers. */
  label: string;
}

/** A button that is only an icon; its label is its name and its tooltip. */
export function IconButton({ icon: Icon, label, look = "quiet", ...rest }: IconButtonProps) {
  return (
    <Tooltip text={label}>
      <Button square look={look} aria-label={label} {...rest}>
        <Icon aria-hidden className="size-4" />
      </Button>
    </Tooltip>
  );
}
