import { Fragment, memo, type MouseEvent, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { useMe } from "@/api/me";
import type { Runner } from "@/api/schema";
import { Badge } from "@/ui/Badge";
import type { Deed } from "./actions";
import { IsolationMark } from "./Isolation";
import { ROW } from "./keys";
import { LoadBars } from "./LoadBars";
import { listNames } from "./name";
import { RunnerMenu } from "./RunnerMenu";
import { Marks, State, Trouble } from "./State";
import { UseButton } from "./UseButton";

/** Labels that a row shows. */
const LABELS = 3;

/** People that a row names. */
const NAMES = 3;

interface RowProps {
  runner: Runner;
  onOpen: (runner: Runner) => void;
  onDeed: (runner: Runner, deed: Deed) => void;
}

/** A runner in a list. Its name opens all that is known of it. It is drawn anew only if its runner has changed. */
export const RunnerRow = memo(function RunnerRow({ runner, onOpen, onDeed }: RowProps) {
  const open = (event: MouseEvent<HTMLElement>) => {
    const target = event.target as Element;
    // A click on what a menu shows elsewhere in the page arrives here as well.
    if (event.currentTarget.contains(target) && !target.closest("button, a") && !getSelection()?.toString()) onOpen(runner);
  };
  return (
    <li
      onClick={open}
      className="grid cursor-pointer grid-cols-[minmax(0,1fr)_auto] items-start gap-x-4 gap-y-1 border-b border-line px-4 py-3 [contain-intrinsic-size:auto_76px] [content-visibility:auto] last:border-b-0 hover:bg-hover lg:grid-cols-[minmax(0,1fr)_10rem_10rem_7rem] lg:grid-rows-[auto_1fr]"
    >
      <div className="flex min-w-0 flex-wrap items-center gap-x-2 gap-y-1 self-center">
        <button type="button" {...{ [ROW]: "" }} onClick={() => onOpen(runner)} className="touchable max-w-full min-w-0 truncate rounded-control text-left font-semibold" dir="auto">
          {runner.name}
        </button>
        <span className="text-dense text-muted">
          <State runner={runner} />
        </span>
        <Marks runner={runner} />
      </div>
      <div className="max-lg:order-1 max-lg:col-span-2 lg:col-start-1 lg:row-start-2">
        <Facts runner={runner} />
        <Labels runner={runner} />
        <Trouble runner={runner} />
      </div>
      <div className="flex flex-wrap gap-x-6 gap-y-2 max-lg:order-2 max-lg:col-span-2 max-lg:pt-1 lg:contents">
        <div className="lg:col-start-2 lg:row-span-2 lg:row-start-1">
          <IsolationMark runner={runner} />
        </div>
        <div className="lg:col-start-3 lg:row-span-2 lg:row-start-1">{runner.figures && <LoadBars figures={runner.figures} />}</div>
      </div>
      <div className="flex items-center justify-end gap-1 lg:col-start-4 lg:row-span-2 lg:row-start-1">
        <UseButton runner={runner} />
        <RunnerMenu runner={runner} onDeed={(deed) => onDeed(runner, deed)} />
      </div>
    </li>
  );
});

/** Facts of a runner in one line, with dots between them. */
function Facts({ runner }: { runner: Runner }) {
  const { t, i18n } = useTranslation("runners");
  const me = useMe();
  const own = me !== undefined && runner.owner === me.user.name;
  const facts: ReactNode[] = [runner.platform, t("version", { version: runner.version }), own ? t("yours") : runner.owner ? t("ownerIs", { name: runner.owner }) : t("ownerless")];
  const shared = runner.shared_with ?? [];
  const names = listNames(shared.slice(0, NAMES), i18n.language);
  if (runner.shared_with_everyone) facts.push(t("sharedWithEveryone"));
  else if (shared.length > NAMES) facts.push(t("sharedWithMore", { names, count: shared.length - NAMES }));
  else if (shared.length > 0) facts.push(t("sharedWith", { names }));
  return (
    <p className="text-dense wrap-anywhere text-muted">
      {facts.map((fact, at) => (
        <Fragment key={at}>
          {at > 0 && <span aria-hidden> · </span>}
          <bdi>{fact}</bdi>
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
