import { Children, Fragment, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { ProblemError } from "@/api/problem";
import { cx } from "@/ui/class";
import { ErrorNote } from "@/ui/ErrorNote";
import { Card } from "@/ui/Page";

/** A box around rows, with a line between each two. */
export function Rows({ children }: { children: ReactNode }) {
  return <Card className="divide-y divide-line">{children}</Card>;
}

interface RowProps {
  label: string;
  /** The id of the label's text, for the name of a control. */
  labelId?: string;
  /** One sentence: what it is for. */
  sentence: ReactNode;
  control: ReactNode;
  /** What else is to be known, such as who set the value: short texts, shown with dots between them. */
  meta?: ReactNode;
  /** What the value comes to now, where that is not the value itself. */
  fact?: ReactNode;
  /** Takes the value back. */
  onReset?: (() => void) | undefined;
  saving?: boolean;
  error?: unknown;
  /** Something that keeps the value from counting. */
  warning?: ReactNode;
}

/** A setting: its name, a sentence, its control, and in small text where the value comes from. */
export function Row({ label, labelId, sentence, control, meta, fact, onReset, saving, error, warning }: RowProps) {
  const { t } = useTranslation("settings");
  return (
    <div className="px-4 py-3">
      <div className="flex flex-col gap-x-6 gap-y-2 md:flex-row md:items-start">
        <div className="min-w-0 flex-1">
          <h3 id={labelId} className="font-medium">
            {label}
          </h3>
          <p className="text-dense text-muted">{sentence}</p>
        </div>
        <div className="flex min-w-0 shrink-0 items-center md:w-60 md:justify-end">{control}</div>
      </div>
      {fact}
      {warning && <p className="mt-2 text-dense text-warn">{warning}</p>}
      {(meta || onReset || saving) && (
        <div className="mt-1 flex flex-wrap items-center gap-x-2 text-meta text-faint">
          {saving ? <span role="status">{t("saving")}</span> : <Dots>{meta}</Dots>}
          {onReset && !saving && (
            <ResetButton name={label} onClick={onReset} />
          )}
        </div>
      )}
      {error !== undefined && error !== null && <RefusedNote error={error} className="mt-2" />}
    </div>
  );
}

/** Takes the value of a setting back, so that the next wider layer counts. */
export function ResetButton({ name, onClick }: { name: string; onClick: () => void }) {
  const { t } = useTranslation("settings");
  return (
    <button type="button" aria-label={t("resetNamed", { name })} className="touchable rounded-control text-left font-medium text-accent hover:underline" onClick={onClick}>
      {t("reset", { ns: "common" })}
    </button>
  );
}

/** Short texts with dots between them; what is empty is left out. */
export function Dots({ children, className }: { children: ReactNode; className?: string }) {
  const parts = Children.toArray(children).filter((part) => part !== "");
  return (
    <span className={cx("block wrap-anywhere", className)}>
      {parts.map((part, index) => (
        <Fragment key={index}>
          {index > 0 && <span aria-hidden>{"\u00a0· "}</span>}
          {part}
        </Fragment>
      ))}
    </span>
  );
}

/** Why a change was refused. The value that stands is the stored one. */
export function RefusedNote({ error, className }: { error: unknown; className?: string }) {
  const { t } = useTranslation("settings");
  const status = error instanceof ProblemError ? error.status : undefined;
  const title = status === 403 ? t("forbidden") : status === 409 ? t("changedMeanwhile") : t("notSaved");
  return <ErrorNote error={error} title={title} {...(className ? { className } : {})} />;
}
