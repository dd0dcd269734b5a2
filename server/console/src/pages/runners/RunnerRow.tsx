import { Fragment, type MouseEvent, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { useMe } from "@/api/me";
import type { Runner } from "@/api/schema";
import { Badge } from "@/ui/Badge";
import type { Deed } from "./actions";
import { IsolationMark } from "./Isolation";
import { ROW } from "./keys";
import { LoadBars } from "./LoadBars";
import { RunnerMenu } from "./RunnerMenu";
import { Marks, State, Trouble } from "./State";
import { UseButton } from "./UseButton";

/** Labels that a row shows. */
const LABELS = 3;

interface RowProps {
  runner: Runner;
  onOpen: () => void;
  onDeed: (deed: Deed) => void;
}

/** A runner in a list. Its name opens all that is known of it. */
export function RunnerRow({ runner, onOpen, onDeed }: RowProps) {
  const open = (event: MouseEvent<HTMLElement>) => {
    const target = event.target as Element;
    // A click on what a menu shows elsewhere in the page arrives here as well.
    if (event.currentTarget.contains(target) && !target.closest("button, a") && !getSelection()?.toString()) onOpen();
  };
  return (
    <li
      onClick={open}
      className="grid cursor-pointer grid-cols-[minmax(0,1fr)_auto] items-start gap-x-4 gap-y-2 border-b border-line px-4 py-3 [contain-intrinsic-size:auto_76px] [content-visibility:auto] last:border-b-0 hover:bg-hover lg:grid-cols-[minmax(0,1fr)_10rem_10rem_7rem]"
    >
      <div className="min-w-0">
        <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <button type="button" {...{ [ROW]: "" }} onClick={onOpen} className="touchable min-w-0 truncate rounded-control text-left font-semibold" dir="auto">
            {runner.name}
          </button>
          <span className="text-dense text-muted">
            <State runner={runner} />
          </span>
          <Marks runner={runner} />
        </div>
        <Facts runner={runner} />
        <Labels runner={runner} />
        <Trouble runner={runner} />
      </div>
      <div className="max-lg:order-3 max-lg:col-span-2">
        <IsolationMark runner={runner} />
      </div>
      <div className="max-lg:order-4 max-lg:col-span-2 max-lg:max-w-48 empty:hidden lg:empty:block">{runner.figures && <LoadBars figures={runner.figures} />}</div>
      <div className="flex items-center justify-end gap-1 max-lg:order-2">
        <UseButton runner={runner} />
        <RunnerMenu runner={runner} onDeed={onDeed} />
      </div>
    </li>
  );
}

/** Facts of a runner in one line, with dots between them. */
function Facts({ runner }: { runner: Runner }) {
  const { t } = useTranslation("runners");
  const me = useMe();
  const own = me !== undefined && runner.owner === me.user.name;
  const facts: ReactNode[] = [runner.platform, t("version", { version: runner.version }), own ? t("yours") : runner.owner ? t("ownerIs", { name: runner.owner }) : t("ownerless")];
  if (runner.shared_with_everyone) facts.push(t("sharedWithEveryone"));
  else if (runner.shared_with?.length) facts.push(t("sharedWith", { names: runner.shared_with.slice(0, 3).join(", "), count: runner.shared_with.length }));
  return (
    <p className="mt-0.5 text-dense wrap-anywhere text-muted">
      {facts.map((fact, at) => (
        <Fragment key={at}>
          {at > 0 && <span aria-hidden> · </span>}
          {fact}
        </Fragment>
      ))}
    </p>
  );
}

/** The first labels of a runner. */
function Labels({ runner }: { runner: Runner }) {
  const labels = Object.entries(runner.labels ?? {});
  if (labels.length === 0) return null;
  return (
    <div className="mt-1 flex flex-wrap gap-1">
      {labels.slice(0, LABELS).map(([key, value]) => (
        <Badge key={key} className="max-w-60">
          <span className="truncate font-mono font-normal">
            {key}={value}
          </span>
        </Badge>
      ))}
      {labels.length > LABELS && <Badge>{`+${labels.length - LABELS}`}</Badge>}
    </div>
  );
}
