import type { LucideIcon } from "lucide-react";
import { DropdownMenu } from "radix-ui";
import { type ReactElement, type ReactNode, useContext } from "react";
import { cx } from "./class";
import { FloatIn } from "./float";

/** A menu that a button opens. */
export function Menu({ trigger, children, align = "end" }: { trigger: ReactElement; children: ReactNode; align?: "start" | "end" }) {
  const container = useContext(FloatIn);
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal container={container}>
        <DropdownMenu.Content
          align={align}
          sideOffset={4}
          collisionPadding={8}
          className="fade-in z-40 max-h-(--radix-dropdown-menu-content-available-height) min-w-44 overflow-y-auto rounded-control border border-line bg-raised p-1 shadow-float"
        >
          {children}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

/** An entry of a menu. */
export function MenuItem({
  icon: Icon,
  children,
  onSelect,
  danger,
  disabled,
  keys,
}: {
  icon?: LucideIcon;
  children: ReactNode;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
  /** The keys that do the same. */
  keys?: string;
}) {
  return (
    <DropdownMenu.Item
      disabled={disabled ?? false}
      onSelect={onSelect}
      className={cx(
        "touchable flex h-8 cursor-pointer items-center gap-2 rounded-control px-2 text-dense outline-none select-none data-disabled:cursor-default data-disabled:opacity-55 data-highlighted:bg-hover",
        danger && "text-bad",
      )}
    >
      {Icon && <Icon aria-hidden className={cx("size-4", !danger && "text-muted")} />}
      <span className="flex-1">{children}</span>
      {keys && <kbd className="text-meta text-faint">{keys}</kbd>}
    </DropdownMenu.Item>
  );
}

/** A line between groups of a menu. */
export function MenuLine() {
  return <DropdownMenu.Separator className="my-1 h-px bg-line" />;
}
