import { PanelRightClose } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { useTranslation } from "react-i18next";
import { keep, kept } from "@/state/storage";
import type { Facts } from "@/transcript/facts";
import { IconButton } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { type Tab, Tabs } from "@/ui/Tabs";
import { useHasNoRoom } from "../useIsNarrow";
import { Changes } from "./Changes";
import { Tasks } from "./Tasks";
import { Todo } from "./Todo";

const SessionFiles = lazy(() => import("./SessionFiles"));
const SessionShell = lazy(() => import("./SessionShell"));

const NAME = "gantry.panel-tab";

interface PanelProps {
  session: string;
  facts: Facts;
  onClose: () => void;
}

/** What lies beside a conversation: its to-do list, its background tasks, the files that it changed, and its machine. */
export function Panel({ session, facts, onClose }: PanelProps) {
  const { t } = useTranslation("files");
  const isNarrow = useHasNoRoom();
  const [tab, setTab] = useState(() => kept(NAME) ?? "todo");
  const choose = (value: string) => {
    keep(NAME, value);
    setTab(value);
  };
  const running = facts.tasks.filter((task) => task.ended === null).length;
  const tabs: Tab[] = [
    { value: "todo", label: <Counted name={t("panelTodo")} count={facts.todo.filter((entry) => entry.state !== "done").length} />, content: <Todo entries={facts.todo} /> },
    { value: "tasks", label: <Counted name={t("panelTasks")} count={running} />, content: <Tasks session={session} heard={facts.tasks} /> },
    { value: "changes", label: <Counted name={t("panelChanges")} count={facts.files.length} />, content: <Changes files={facts.files} dropped={facts.filesDropped} /> },
    { value: "files", label: t("panelFiles"), content: tab === "files" && <SessionFiles session={session} facts={facts} /> },
    { value: "terminal", label: t("panelTerminal"), content: tab === "terminal" && <SessionShell session={session} facts={facts} /> },
  ];
  const content = (
    <Suspense>
      <Tabs tabs={tabs} value={tabs.some((one) => one.value === tab) ? tab : "todo"} onChange={choose} label={t("panel")} />
    </Suspense>
  );
  if (isNarrow) {
    return (
      <Dialog open shape="sheet" title={t("panel")} onClose={onClose}>
        <div className="-mx-6 flex h-[70dvh] min-h-0 flex-col">{content}</div>
      </Dialog>
    );
  }
  return (
    <aside aria-label={t("panel")} className="relative flex w-90 shrink-0 flex-col border-l border-line bg-surface xl:w-104">
      <div className="absolute top-1 right-1 z-10 bg-surface">
        <IconButton icon={PanelRightClose} label={t("closePanel")} onClick={onClose} />
      </div>
      <div className="flex min-h-0 flex-1 flex-col pt-1 [&_[role=tab]]:px-1.5 [&_[role=tablist]]:gap-0 [&_[role=tablist]]:pr-10">{content}</div>
    </aside>
  );
}

/** The name of a tab, and how many things it has. */
function Counted({ name, count }: { name: string; count: number }) {
  return (
    <>
      {name}
      {count > 0 && <span className="ml-1 text-meta text-muted tabular-nums">{count}</span>}
    </>
  );
}
