import { useQuery } from "@tanstack/react-query";
import { ChevronRight, Cpu, Square } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { stopOperation, tasksQuery } from "@/api/operations";
import { moment } from "@/format/time";
import type { Task } from "@/transcript/facts";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { cx } from "@/ui/class";
import { Empty } from "@/ui/Empty";
import { LiveTail } from "./LiveTail";

/** The commands that outlasted their calls: those that the log tells of, and older ones that still run. */
export function Tasks({ session, heard }: { session: string; heard: readonly Task[] }) {
  const { t } = useTranslation("files");
  const stored = useQuery(tasksQuery(session)).data ?? [];
  const older = stored.filter((task) => !heard.some((one) => one.operation === task.operation));
  const tasks = [...older, ...heard].toSorted((a, b) => b.number - a.number);
  if (tasks.length === 0) {
    return (
      <Empty icon={Cpu} title={t("noTasks")}>
        {t("noTasksHint")}
      </Empty>
    );
  }
  return (
    <ul className="divide-y divide-line">
      {tasks.map((task) => (
        <TaskRow key={task.operation} task={task} />
      ))}
    </ul>
  );
}

/** What a row needs of a task. */
export type ShownTask = Pick<Task, "number" | "operation" | "about" | "runnerName" | "startedAt" | "lastLine" | "ended">;

function TaskRow({ task }: { task: ShownTask }) {
  const { t, i18n } = useTranslation("files");
  const [open, setOpen] = useState(false);
  const [stopping, setStopping] = useState(false);
  return (
    <li className="px-4 py-2">
      <div className="flex items-center gap-2">
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)} className="touchable flex min-w-0 flex-1 items-center gap-2 text-left">
          <ChevronRight aria-hidden className={cx("size-4 shrink-0 text-faint transition-transform duration-100", open && "rotate-90")} />
          <code className="min-w-0 truncate text-code">{task.about}</code>
        </button>
        {task.ended === null ? (
          <Button size="sm" icon={Square} onClick={() => setStopping(true)}>
            {t("stop")}
          </Button>
        ) : (
          <Badge>{task.ended}</Badge>
        )}
      </div>
      <p className="truncate pl-6 text-meta text-muted">
        {t("taskFacts", { number: task.number, runner: task.runnerName, time: moment(new Date(task.startedAt).toISOString(), i18n.language) })}
      </p>
      {!open && task.lastLine !== "" && <p className="truncate pl-6 font-mono text-meta text-faint">{task.lastLine}</p>}
      {open && <LiveTail operation={task.operation} label={task.about} />}
      <Confirm open={stopping} onClose={() => setStopping(false)} danger title={t("stopTitle")} verb={t("stop")} onConfirm={() => stopOperation(task.operation)}>
        {t("stopHint", { command: task.about, runner: task.runnerName })}
      </Confirm>
    </li>
  );
}
