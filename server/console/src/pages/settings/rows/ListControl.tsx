import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { runnersQuery } from "@/api/runners";
import { Select } from "@/ui/Field";
import { MODES } from "./facts";
import type { ControlProps } from "./SettingLine";
import { useModeText, useValueText } from "./value-text";

interface Choice {
  value: string;
  label: string;
}

/** One of a few values. A value that is none of them, or that nobody set, stands in the list as it is. */
function ListControl({ setting, value, onSave, saving, labelId, choices }: ControlProps & { choices: readonly Choice[] }) {
  const text = useValueText();
  const known = choices.some((choice) => choice.value === value);
  return (
    <Select aria-labelledby={labelId} disabled={saving} value={value ?? ""} onChange={(event) => event.target.value && onSave(event.target.value)}>
      {!known && <option value={value ?? ""}>{text(setting.name, value)}</option>}
      {choices.map((choice) => (
        <option key={choice.value} value={choice.value}>
          {choice.label}
        </option>
      ))}
    </Select>
  );
}

/** The freedom of agents. */
export function ModeControl(props: ControlProps) {
  const mode = useModeText();
  return <ListControl {...props} choices={MODES.map((value) => ({ value, label: mode(value) }))} />;
}

/** Whether commands may be root. */
export function SudoControl(props: ControlProps) {
  const { t } = useTranslation("settings");
  return (
    <ListControl
      {...props}
      choices={[
        { value: "allow", label: t("sudoAllow") },
        { value: "forbid", label: t("sudoForbid") },
      ]}
    />
  );
}

/** The runner of people who have chosen none: one that everyone may use. */
export function TenantRunnerControl(props: ControlProps) {
  const { t } = useTranslation("settings");
  const { data } = useQuery(runnersQuery);
  const shared = data?.runners.filter((runner) => runner.shared_with_everyone) ?? [];
  if (data && shared.length === 0 && !props.value) return <span className="text-dense text-muted md:text-right">{t("noSharedRunner")}</span>;
  return <ListControl {...props} choices={shared.map((runner) => ({ value: runner.name, label: runner.name }))} />;
}
