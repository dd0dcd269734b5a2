import { useTranslation } from "react-i18next";
import { changeRunner, distrustRunner, removeRunner, takeRunner, trustRunner } from "@/api/runners";
import type { Runner } from "@/api/schema";
import { Confirm } from "@/ui/Confirm";
import { say } from "@/ui/Toast";
import type { Deed } from "./actions";
import { IsolationDetails } from "./Isolation";
import { Rename } from "./Rename";
import { Share } from "./Share";

interface DeedProps {
  deed: Deed;
  runner: Runner;
  onClose: () => void;
}

/** Asks about a deed to a runner, says what it means, and does it. */
export function DeedDialog({ deed, runner, onClose }: DeedProps) {
  const { t } = useTranslation("runners");
  if (deed === "rename") return <Rename runner={runner} onClose={onClose} />;
  if (deed === "share") return <Share runner={runner} onClose={onClose} />;
  const does: Record<Exclude<Deed, "rename" | "share">, () => Promise<unknown>> = {
    drain: () => changeRunner(runner.id, { draining: true }),
    undrain: () => changeRunner(runner.id, { draining: false }),
    trust: () => trustRunner(runner.id),
    distrust: () => distrustRunner(runner.id),
    take: () => takeRunner(runner.id),
    remove: () => removeRunner(runner.id),
  };
  const name = runner.name;
  return (
    <Confirm
      open
      onClose={onClose}
      title={t(`${deed}Title`, { name })}
      verb={t(`${deed}Do`)}
      danger={deed === "remove"}
      onConfirm={async () => {
        await does[deed]();
        say(t(`${deed}Done`, { name }));
      }}
    >
      <p>{t(`${deed}Why`, { name, owner: runner.owner ?? t("noOne") })}</p>
      {deed === "remove" && <Ends runner={runner} />}
      {deed === "trust" && (
        <div className="mt-3 text-ink">
          <IsolationDetails runner={runner} />
        </div>
      )}
    </Confirm>
  );
}

/** What a removal ends. */
function Ends({ runner }: { runner: Runner }) {
  const { t } = useTranslation("runners");
  const running = runner.figures?.operations_running ?? 0;
  const ends = [
    running > 0 ? t("removeEndsRunning", { count: running }) : t("removeEndsCommands"),
    runner.active ? t("removeEndsUse") : t("removeEndsChats"),
    runner.pool ? t("removeKeepsContainers") : t("removeKeepsFiles"),
    t("removeUninstall"),
  ];
  return (
    <ul className="mt-2 flex list-disc flex-col gap-1 pl-5">
      {ends.map((one) => (
        <li key={one}>{one}</li>
      ))}
    </ul>
  );
}
