import { TriangleAlert } from "lucide-react";
import { useTranslation } from "react-i18next";
import { ProblemError } from "@/api/problem";
import { Button } from "./Button";
import { cx } from "./class";
import { reasonOf } from "./failure";

/** Says what failed, why, and what to do. The code for programs stands behind “details”. */
export function ErrorNote({ error, title, onRetry, className }: { error: unknown; title?: string; onRetry?: (() => void) | undefined; className?: string }) {
  const { t } = useTranslation("common");
  const problem = error instanceof ProblemError ? error : undefined;
  const words = reasonOf(error);
  return (
    <div role="alert" className={cx("flex items-start gap-2 rounded-control bg-bad-soft px-3 py-2 text-dense", className)}>
      <TriangleAlert aria-hidden className="mt-0.5 size-4 shrink-0 text-bad" />
      <div className="min-w-0 flex-1">
        {title && <p className="font-medium">{title}</p>}
        <p className="wrap-anywhere">{words}</p>
        {problem && !problem.isUnreachable && (
          <details className="mt-1 text-meta text-muted">
            <summary>{t("details")}</summary>
            <p className="font-mono">
              {problem.status} {problem.code}
            </p>
            {/* In another language the server's own sentence may say more. */}
            {!words.includes(problem.message) && (
              <p lang="en" className="wrap-anywhere">
                {problem.message}
              </p>
            )}
          </details>
        )}
      </div>
      {onRetry && (
        <Button size="sm" onClick={onRetry}>
          {t("tryAgain")}
        </Button>
      )}
    </div>
  );
}
