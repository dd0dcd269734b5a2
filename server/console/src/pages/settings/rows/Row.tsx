import { Children, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { ProblemError } from "@/api/problem";
import { Button } from "@/ui/Button";
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
  /** Takes the value back. */
  onReset?: (() => void) | undefined;
  saving?: boolean;
  error?: unknown;
  /** Something that keeps the value from counting. */
  warning?: ReactNode;
}

/** A setting: its name, a sentence, its control, and in small text where the value comes from. */
export function Row({ label, labelId, sentence, control, meta, onReset, saving, error, warning }: RowProps) {
  const { t } = useTranslation("settings");
  return (
    <div className="px-4 py-3.5">
      <div className="flex flex-col gap-x-6 gap-y-2 md:flex-row md:items-start">
        <div className="min-w-0 flex-1">
          <h3 id={labelId} className="font-medium">
            {label}
          </h3>
          <p className="text-dense text-muted">{sentence}</p>
        </div>
        <div className="flex min-w-0 shrink-0 items-center md:w-60 md:justify-end">{control}</div>
      </div>
      {warning && <p className="mt-2 text-dense text-warn">{warning}</p>}
      {(meta || onReset || saving) && (
        <div className="mt-1.5 flex min-h-7 flex-wrap items-center gap-x-1.5 text-meta text-faint">
          {saving ? <span role="status">{t("saving")}</span> : <Dots>{meta}</Dots>}
          {onReset && !saving && (
            <Button look="quiet" size="sm" className="-my-1 ml-1" aria-label={t("resetNamed", { name: label })} onClick={onReset}>
              {t("reset", { ns: "common" })}
            </Button>
          )}
        </div>
      )}
      {error !== undefined && error !== null && <RefusedNote error={error} className="mt-2" />}
    </div>
  );
}

/** Short texts with dots between them; what is empty is left out. */
export function Dots({ children, className }: { children: ReactNode; className?: string }) {
  const parts = Children.toArray(children);
  return (
    <span className={cx("flex flex-wrap items-center gap-x-1.5", className)}>
      {parts.map((part, index) => (
        <span key={index} className="inline-flex min-w-0 items-center gap-x-1.5">
          {index > 0 && <span aria-hidden>·</span>}
          <span className="min-w-0 wrap-anywhere">{part}</span>
        </span>
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
