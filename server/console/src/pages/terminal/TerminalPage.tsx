import { useNavigate, useSearch } from "@tanstack/react-router";
import { Plus, SquareTerminal, X, ZoomIn, ZoomOut } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { mayWork, useMe } from "@/api/me";
import { OnlyLooks } from "@/frame/OnlyLooks";
import { useTitle } from "@/state/title";
import { Button, IconButton } from "@/ui/Button";
import { cx } from "@/ui/class";
import { Empty } from "@/ui/Empty";
import { ErrorNote } from "@/ui/ErrorNote";
import { CloseDialog } from "./CloseDialog";
import { OtherShells } from "./OtherShells";
import { StoredShell } from "./StoredShell";
import { forget, type OpenTerminal, remember, useTerminals } from "./terminals";
import { useNewShell } from "./useNewShell";
import { useFontSize } from "./font-size";

/** Interactive shells on the person's machines, one tab each. They go on while no page shows them. */
export function TerminalPage() {
  const { t } = useTranslation("terminal");
  useTitle(t("title"));
  const { operation, runner } = useSearch({ from: "/frame/terminal" });
  const navigate = useNavigate({ from: "/terminal" });
  const terminals = useTerminals();
  const me = useMe();
  const [closing, setClosing] = useState<OpenTerminal>();
  const [fontSize, zoom] = useFontSize();
  const show = (id: string | undefined) => void navigate({ search: id ? { operation: id } : {} });
  const attach = (terminal: OpenTerminal) => {
    remember(terminal);
    show(terminal.operation);
  };
  const shell = useNewShell(attach);
  const close = (terminal: OpenTerminal) => {
    forget(terminal.operation);
    setClosing(undefined);
    if (terminal.operation === operation) show(terminals.find((other) => other.operation !== operation)?.operation);
  };
  const tabs = operation && !terminals.some((one) => one.operation === operation) ? [...terminals, { operation, runner: "", ended: false }] : terminals;
  return (
    <main className="flex min-h-0 min-w-0 flex-1 flex-col bg-term">
      <h1 className="sr-only">{t("title")}</h1>
      <header className="flex h-11 shrink-0 items-center gap-1 border-b border-line bg-surface px-2">
        <div role="tablist" aria-label={t("title")} className="flex min-w-0 flex-1 gap-1 overflow-x-auto">
          {tabs.map((one, place) => (
            <div key={one.operation} className={cx("flex shrink-0 items-center rounded-control", one.operation === operation ? "bg-selected" : "hover:bg-hover")}>
              <button
                type="button"
                role="tab"
                aria-selected={one.operation === operation}
                onClick={() => show(one.operation)}
                className={cx("touchable flex h-8 items-center gap-2 rounded-control pr-1 pl-3 text-dense", one.ended && "text-muted")}
              >
                <SquareTerminal aria-hidden className="size-4 text-muted" />
                {t("tab", { number: place + 1, runner: one.runner || t("shell") })}
              </button>
              <IconButton icon={X} size="sm" label={t("close")} onClick={() => (one.ended ? close(one) : setClosing(one))} />
            </div>
          ))}
        </div>
        <OtherShells shown={tabs.map((one) => one.operation)} onOpen={attach} />
        <IconButton icon={ZoomOut} label={t("smaller")} onClick={() => zoom(-1)} />
        <IconButton icon={ZoomIn} label={t("larger")} onClick={() => zoom(1)} />
        {mayWork(me) && (
          <Button size="sm" icon={Plus} busy={shell.busy} onClick={() => void shell.open({ runner })}>
            {t("newShell")}
          </Button>
        )}
      </header>
      {shell.error !== undefined && <ErrorNote error={shell.error} title={t("notOpened")} className="m-2" />}
      {operation ? (
        <StoredShell key={operation} operation={operation} fontSize={fontSize} takesFocus />
      ) : (
        <div className="flex flex-1 items-center justify-center bg-canvas">
          {mayWork(me) ? (
            <Empty
              icon={SquareTerminal}
              title={t("none")}
              action={
                <Button look="primary" busy={shell.busy} onClick={() => void shell.open({ runner })}>
                  {t("openOn", { runner: runner ?? me?.active_runner_name ?? t("activeRunner") })}
                </Button>
              }
            >
              {t("noneHint")}
            </Empty>
          ) : (
            <OnlyLooks />
          )}
        </div>
      )}
      {closing && <CloseDialog terminal={closing} onKeep={() => setClosing(undefined)} onClose={() => close(closing)} />}
    </main>
  );
}
