import { useQuery } from "@tanstack/react-query";
import { SquareTerminal } from "lucide-react";
import { useTranslation } from "react-i18next";
import { LOGIN_SHELL, shellsQuery } from "@/api/operations";
import { line } from "@/transcript/safe";
import { Button } from "@/ui/Button";
import { Menu, MenuItem } from "@/ui/Menu";
import { Ago } from "@/ui/Time";
import type { OpenTerminal } from "./terminals";

/** A menu of the shells that run and are not among `shown`: another browser opened them, or this one closed their tabs. */
export function OtherShells({ shown, onOpen }: { shown: readonly string[]; onOpen: (terminal: OpenTerminal) => void }) {
  const { t } = useTranslation("terminal");
  const { data } = useQuery(shellsQuery);
  const others = data?.filter((shell) => !shown.includes(shell.id)) ?? [];
  if (others.length === 0) return null;
  return (
    <Menu trigger={<Button size="sm">{t("others", { count: others.length })}</Button>}>
      {others.map(({ id, runner, title, placed_at }) => (
        <MenuItem key={id} icon={SquareTerminal} onSelect={() => onOpen({ operation: id, runner: runner.name, ended: false })}>
          {line(runner.name)} · {title === LOGIN_SHELL ? t("shell") : line(title, 60)} · <Ago at={placed_at} />
        </MenuItem>
      ))}
    </Menu>
  );
}
