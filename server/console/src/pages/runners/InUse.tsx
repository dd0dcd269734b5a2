import { useTranslation } from "react-i18next";
import type { Me, Runner } from "@/api/schema";
import { placeName } from "./order";

interface InUseProps {
  me: Me;
  /** The runner in use, where the person may see it. */
  runner: Runner | undefined;
  /** True if there are runners to choose from. */
  choice: boolean;
}

/** Where the person's tools run, in words. */
export function InUse({ me, runner, choice }: InUseProps) {
  const { t } = useTranslation("runners");
  if (runner) {
    const place = placeName(runner.name, me.active_workspace);
    const workspace = me.active_workspace ? runner.sandboxes?.find((one) => one.name === me.active_workspace) : runner.sandboxes?.[0];
    const folder = runner.pool ? undefined : (workspace?.root ?? (me.active_workspace ? undefined : runner.workspace));
    return (
      <span className="wrap-anywhere">
        {folder ? t("inUseFolder", { place, folder }) : runner.pool ? t("inUsePool", { place }) : t("inUsePlace", { place })}
        {me.active_runner_is_default && <> {t("inUseDefault")}</>}
        {me.active_workspace && !workspace && <strong className="font-medium text-bad"> {t("workspaceGone")}</strong>}
        <span className="block">{t("fromNextMessage")}</span>
      </span>
    );
  }
  const name = me.active_runner_name;
  const words = name ? (me.active_runner_removed ? t("activeRemoved", { name }) : t("activeNotShared", { name })) : t("noneInUse");
  return (
    <p className="rounded-card bg-warn-soft px-4 py-3 text-dense wrap-anywhere">
      {words} {choice && t("chooseOne")}
    </p>
  );
}
