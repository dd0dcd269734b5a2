import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { testModel } from "@/api/models";
import { Button } from "@/ui/Button";
import { ErrorNote } from "@/ui/ErrorNote";
import { ProbeNote } from "./ProbeNote";

/** A row with a button that asks a model, or the first model of an account, one small thing. */
export function TestButton({ name, canTest = true, children, actions }: { name: string; canTest?: boolean; children: ReactNode; actions?: ReactNode }) {
  const { t } = useTranslation("settings");
  const test = useMutation({ mutationFn: () => testModel(name) });
  return (
    <div className="px-4 py-2.5">
      <div className="flex items-center gap-3">
        <div className="min-w-0 flex-1">{children}</div>
        {canTest && (
          <Button size="sm" busy={test.isPending} aria-label={t("testNamed", { name })} onClick={() => test.mutate()}>
            {t(test.isPending ? "testing" : "test")}
          </Button>
        )}
        {actions}
      </div>
      {test.data && <ProbeNote probe={test.data} />}
      {test.error && <ErrorNote error={test.error} title={t("testFailed")} className="mt-2" />}
    </div>
  );
}
