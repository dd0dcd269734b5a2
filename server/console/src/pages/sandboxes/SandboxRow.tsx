import type { MouseEvent } from "react";
import { useTranslation } from "react-i18next";
import { useMe } from "@/api/me";
import type { Sandbox } from "@/api/schema";
import { told } from "@/i18n/told";
import { Badge } from "@/ui/Badge";
import { Ago } from "@/ui/Time";
import { ROW } from "@/pages/runners/keys";
import { useLimits, useNetwork } from "./Limits";
import { Power } from "./Power";
import { State } from "./State";

/** A sandbox in the list. Its runner and owner open all that is known of it. */
export function SandboxRow({ sandbox, onOpen }: { sandbox: Sandbox; onOpen: () => void }) {
  const { t } = useTranslation("sandboxes");
  const me = useMe();
  const limits = useLimits(sandbox);
  const network = useNetwork(sandbox);
  const open = (event: MouseEvent<HTMLElement>) => {
    if (!(event.target as Element).closest("button, a, dialog") && !getSelection()?.toString()) onOpen();
  };
  return (
    <li
      onClick={open}
      className="grid cursor-pointer grid-cols-[minmax(0,1fr)_auto] items-start gap-x-4 gap-y-1 border-b border-line px-4 py-3 [contain-intrinsic-size:auto_64px] [content-visibility:auto] last:border-b-0 hover:bg-hover lg:grid-cols-[minmax(0,1fr)_18rem_6rem]"
    >
      <div className="min-w-0">
        <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <button type="button" {...{ [ROW]: "" }} onClick={onOpen} className="touchable min-w-0 truncate rounded-control text-left font-semibold" dir="auto">
            {sandbox.owner === me?.user.name ? t("yoursOn", { runner: sandbox.runner_name }) : t("ofOn", { owner: sandbox.owner, runner: sandbox.runner_name })}
          </button>
          <Badge className="max-w-40">
            <span className="truncate">{sandbox.template}</span>
          </Badge>
          {sandbox.privilege === "sudo" && <Badge tone="warn">{t("sudo")}</Badge>}
        </div>
        <p className="mt-0.5 flex flex-wrap gap-x-1.5 text-dense text-muted">
          <State state={sandbox.state} />
          <span aria-hidden>·</span>
          <Ago at={sandbox.since} />
        </p>
        {sandbox.reason && <p className={sandbox.state === "failed" ? "text-dense wrap-anywhere text-bad" : "text-dense wrap-anywhere text-muted"}>{told(sandbox.reason)}</p>}
      </div>
      <div className="text-dense text-muted max-lg:order-3 max-lg:col-span-2">
        <p>{limits}</p>
        <p>{network}</p>
      </div>
      <div className="flex justify-end max-lg:order-2">
        <Power sandbox={sandbox} />
      </div>
    </li>
  );
}
