import { SquareTerminal } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { mayWork, useMe } from "@/api/me";
import { OnlyLooks } from "@/frame/OnlyLooks";
import { usePlace } from "@/pages/chat/composer/place";
import { useFontSize } from "@/pages/terminal/font-size";
import { OtherShells } from "@/pages/terminal/OtherShells";
import { StoredShell } from "@/pages/terminal/StoredShell";
import { type OpenTerminal, remember } from "@/pages/terminal/terminals";
import { useNewShell } from "@/pages/terminal/useNewShell";
import { keep, kept } from "@/state/storage";
import type { Facts } from "@/transcript/facts";
import { Button } from "@/ui/Button";
import { Empty } from "@/ui/Empty";
import { ErrorNote } from "@/ui/ErrorNote";

/** A shell in the folder of the conversation. The browser remembers which one, so that it is there after a reload. */
export default function SessionShell({ session, facts }: { session: string; facts: Facts }) {
  const { t } = useTranslation("terminal");
  const name = `gantry.shell.${session}`;
  const [operation, setOperation] = useState(() => kept(name));
  const [fontSize] = useFontSize();
  const [isNew, setNew] = useState(false);
  const place = usePlace(session);
  const attach = (terminal: OpenTerminal) => {
    keep(name, terminal.operation);
    remember(terminal);
    setOperation(terminal.operation);
    setNew(true);
  };
  const shell = useNewShell(attach);
  const me = useMe();
  const runner = place?.name;
  const open = () => void shell.open({ runner: place?.value, directory: facts.directory });
  if (!mayWork(me)) return <OnlyLooks />;
  if (!operation) {
    return (
      <Empty
        icon={SquareTerminal}
        title={t("none")}
        action={
          <div className="flex flex-col items-center gap-2">
            <Button look="primary" busy={shell.busy} onClick={open}>
              {t("openOn", { runner: runner ?? t("activeRunner") })}
            </Button>
            <OtherShells shown={[]} onOpen={attach} />
          </div>
        }
      >
        {t("noneHint")}
        {shell.error !== undefined && <ErrorNote error={shell.error} className="mt-3 text-left" />}
      </Empty>
    );
  }
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <StoredShell key={operation} operation={operation} fontSize={Math.min(fontSize, 12)} takesFocus={isNew} />
      <div className="flex justify-end gap-2 border-t border-line p-2">
        <OtherShells shown={[operation]} onOpen={attach} />
        <Button size="sm" busy={shell.busy} onClick={open}>
          {t("newShell")}
        </Button>
      </div>
    </div>
  );
}
