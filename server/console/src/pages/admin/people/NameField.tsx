import { useTranslation } from "react-i18next";
import { Field, Input } from "@/ui/Field";

/** The name of a person or a service account. */
export function NameField({ name, onChange, autoFocus }: { name: string; onChange: (name: string) => void; autoFocus: boolean }) {
  const { t } = useTranslation("admin");
  return (
    <Field label={t("name")} hint={t("nameHint")}>
      {(control) => (
        <Input
          {...control}
          autoFocus={autoFocus}
          required
          maxLength={32}
          pattern="[A-Za-z]([A-Za-z0-9\-]*[A-Za-z0-9])?"
          autoCapitalize="none"
          spellCheck={false}
          value={name}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}
