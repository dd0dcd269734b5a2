import { useState } from "react";
import { useTranslation } from "react-i18next";
import { createSandbox } from "@/api/sandboxes";
import type { Runner } from "@/api/schema";
import { told } from "@/i18n/told";
import { Field, Select } from "@/ui/Field";
import { FormDialog } from "@/ui/FormDialog";
import { say } from "@/ui/Toast";

interface MakeProps {
  /** The runners that make sandboxes. */
  pools: Runner[];
  onClose: () => void;
}

/** Makes the person's own sandbox on a pool. */
export function MakeDialog({ pools, onClose }: MakeProps) {
  const { t } = useTranslation("sandboxes");
  const [runner, setRunner] = useState(pools[0]?.id ?? "");
  const chosen = pools.find((pool) => pool.id === runner);
  const problem = chosen?.pool?.problem;
  const make = async () => {
    await createSandbox(runner);
    say(t("made", { runner: chosen?.name ?? "" }));
    onClose();
  };
  return (
    <FormDialog onClose={onClose} title={t("makeTitle")} description={t("makeWhy")} verb={t("make")} ready={chosen !== undefined} onSubmit={make}>
      <Field label={t("runner")} hint={problem ? told(problem) : chosen && !chosen.online ? t("runnerAway") : undefined}>
        {(control) => (
          <Select {...control} value={runner} onChange={(event) => setRunner(event.target.value)}>
            {pools.map((pool) => (
              <option key={pool.id} value={pool.id}>
                {pool.online ? pool.name : t("away", { name: pool.name })}
              </option>
            ))}
          </Select>
        )}
      </Field>
    </FormDialog>
  );
}
