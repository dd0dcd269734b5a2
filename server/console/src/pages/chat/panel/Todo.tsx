import { CircleCheck, CircleDashed, CircleDot, ListTodo, type LucideIcon } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { TodoState } from "@/api/schema";
import type { TodoEntry } from "@/transcript/model";
import { cx } from "@/ui/class";
import { Empty } from "@/ui/Empty";

const ICONS: Readonly<Record<TodoState, LucideIcon>> = { open: CircleDashed, doing: CircleDot, done: CircleCheck };

/** The agent's to-do list. */
export function Todo({ entries }: { entries: readonly TodoEntry[] }) {
  const { t } = useTranslation("files");
  if (entries.length === 0) {
    return (
      <Empty icon={ListTodo} title={t("noTodo")}>
        {t("noTodoHint")}
      </Empty>
    );
  }
  return (
    <ol className="flex flex-col gap-2 p-4 text-dense">
      {entries.map((entry, index) => {
        const Icon = ICONS[entry.state];
        return (
          <li key={index} className="flex items-start gap-2">
            <Icon aria-label={t(`todo_${entry.state}`)} role="img" className={cx("mt-0.5 size-4 shrink-0", entry.state === "doing" ? "text-accent" : "text-faint")} />
            <span className={cx("min-w-0 wrap-anywhere", entry.state === "done" && "text-muted line-through", entry.state === "doing" && "font-medium")}>{entry.text}</span>
          </li>
        );
      })}
    </ol>
  );
}
