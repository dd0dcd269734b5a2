import { CircleCheck, CircleDashed, CircleDot, CircleSlash, ListTodo, type LucideIcon } from "lucide-react";
import { memo } from "react";
import { useTranslation } from "react-i18next";
import type { TodoItem } from "@/transcript/model";
import { Disclosure } from "./Disclosure";
import { useFold } from "./context";

const ICONS: Readonly<Record<"open" | "doing" | "done", LucideIcon>> = { open: CircleDashed, doing: CircleDot, done: CircleCheck };

/** A change of the to-do list: how much of it is done, and what comes next; it opens to the whole list. */
export const TodoChange = memo(function TodoChange({ item }: { item: TodoItem }) {
  const { t } = useTranslation("transcript");
  const [open, toggle] = useFold(item.id, false);
  const done = item.items.filter((entry) => entry.state === "done").length;
  const next = item.items.find((entry) => entry.state === "doing") ?? item.items.find((entry) => entry.state === "open");
  const gone = item.changed.filter((entry) => entry.gone);
  return (
    <Disclosure
      icon={ListTodo}
      open={open}
      onToggle={toggle}
      head={<span className="text-muted">{item.found ? t("todoFound", { done, count: item.items.length }) : t("todo", { done, count: item.items.length })}</span>}
      tail={open ? undefined : next?.text}
    >
      <ul className="flex flex-col gap-1 pl-6 text-dense">
        {item.items.map((entry, index) => (
          <Entry key={index} icon={ICONS[entry.state]} name={t(`todo_${entry.state}`)} text={entry.text} quiet={entry.state === "done"} />
        ))}
        {gone.map((entry, index) => (
          <Entry key={`gone${index}`} icon={CircleSlash} name={t("todo_gone")} text={entry.text} quiet />
        ))}
      </ul>
    </Disclosure>
  );
});

function Entry({ icon: Icon, name, text, quiet }: { icon: LucideIcon; name: string; text: string; quiet: boolean }) {
  return (
    <li className="flex items-start gap-2">
      <Icon aria-label={name} role="img" className="mt-0.5 size-4 shrink-0 text-faint" />
      <span className={quiet ? "min-w-0 text-muted wrap-anywhere" : "min-w-0 wrap-anywhere"}>{text}</span>
    </li>
  );
}
