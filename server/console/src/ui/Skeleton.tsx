import { useTranslation } from "react-i18next";

/** Holds the place of rows that are on their way. It is not visible for the first 300 ms. */
export function Skeleton({ rows = 3, className = "h-12" }: { rows?: number; className?: string }) {
  const { t } = useTranslation("common");
  return (
    <div role="status" aria-label={t("loading")} className="late flex flex-col gap-2 p-2">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className={`rounded-control bg-sunken ${className}`} />
      ))}
    </div>
  );
}
