import { Check, Minus } from "lucide-react";
import { useTranslation } from "react-i18next";
import { PROPERTIES, propertiesOf } from "@/api/isolation";
import type { Runner } from "@/api/schema";
import { Badge } from "@/ui/Badge";
import { Tooltip } from "@/ui/Tooltip";
import { cx } from "@/ui/class";

type Reported = Pick<Runner, "isolation" | "isolation_believed" | "isolation_granted_by">;

/** Who vouches for what a runner reports of its isolation, in words. */
function useWhose(runner: Reported): string {
  const { t } = useTranslation("runners");
  if (runner.isolation_granted_by) return t("grantedBy", { name: runner.isolation_granted_by });
  return runner.isolation_believed ? t("grantedByOperator") : t("reported");
}

/** What a runner keeps apart, as far as the console has words for it. */
function keptBy(runner: Reported) {
  const reported = propertiesOf(runner.isolation);
  return PROPERTIES.filter((property) => reported.includes(property));
}

/** The isolation of a runner in a row: how much it keeps apart, and who vouches for it. */
export function IsolationMark({ runner }: { runner: Reported }) {
  const { t } = useTranslation("runners");
  const kept = keptBy(runner);
  const whose = useWhose(runner);
  const none = kept.length === 0;
  const words = none ? t("isolationNone") : t("isolationSome", { count: kept.length, all: PROPERTIES.length });
  return (
    <Tooltip text={none ? t("noneMeans") : kept.map((property) => t(property)).join(" ")}>
      <span className="inline-flex flex-col items-start gap-0.5">
        <Badge tone={none ? "neutral" : runner.isolation_believed ? "good" : "accent"}>{words}</Badge>
        <span className="text-meta text-muted">{whose}</span>
      </span>
    </Tooltip>
  );
}

/** What a runner keeps apart, thing by thing, by what that was proved, and whether it counts. */
export function IsolationDetails({ runner }: { runner: Reported }) {
  const { t } = useTranslation("runners");
  const kept = keptBy(runner);
  const whose = useWhose(runner);
  return (
    <>
      <p className="text-dense text-muted">{kept.length === 0 ? t("noneMeans") : t("someMeans", { whose })}</p>
      {kept.length > 0 && (
        <ul className="mt-2 flex flex-col gap-1 text-dense">
          {PROPERTIES.map((property) => {
            const holds = kept.includes(property);
            const Icon = holds ? Check : Minus;
            return (
              <li key={property} className={cx("flex items-start gap-2", !holds && "text-muted")}>
                <Icon role="img" aria-label={holds ? t("holds") : t("holdsNot")} className={cx("mt-px size-4 shrink-0", holds && "text-good")} />
                <span>{holds ? t(property) : t(`${property}_not`)}</span>
              </li>
            );
          })}
        </ul>
      )}
    </>
  );
}
