import { ChevronDown } from "lucide-react";
import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";
import { useTranslation } from "react-i18next";
import { Segments } from "@/ui/Segments";
import { cx } from "@/ui/class";

interface ChipProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  ref?: Ref<HTMLButtonElement>;
  children: ReactNode;
}

/** What counts for the chat, below the input; it opens a list to choose another. */
export function Chip({ children, className, ...rest }: ChipProps) {
  return (
    <button
      type="button"
      className={cx("touchable flex h-7 min-w-0 items-center gap-1.5 rounded-control px-2 text-dense text-muted hover:bg-hover hover:text-ink data-[state=open]:bg-hover disabled:cursor-default disabled:opacity-55", className)}
      {...rest}
    >
      {children}
      <ChevronDown aria-hidden className="size-3.5 shrink-0 text-faint" />
    </button>
  );
}

/** For what a choice counts: this chat, or all chats that have no choice of their own. */
export type Scope = "chat" | "all";

/** Chooses for what a choice counts. */
export function ScopeSwitch({ scope, onChange }: { scope: Scope; onChange: (scope: Scope) => void }) {
  const { t } = useTranslation("chat");
  return (
    <Segments
      label={t("inputScope")}
      value={scope}
      onChange={onChange}
      segments={[
        { value: "chat", label: t("inputScopeChat") },
        { value: "all", label: t("inputScopeAll") },
      ]}
    />
  );
}

/** The value of the option that takes a chat's own choice back. */
export const AS_USUAL = "-";
