import { useTranslation } from "react-i18next";
import { Field, Input, Select, Textarea } from "@/ui/Field";
import { type AccountForm, FORMATS } from "./account-form";

interface AccountMoreProps {
  form: AccountForm;
  set: (change: Partial<AccountForm>) => void;
  withName: boolean;
  withAddress: boolean;
  withModels: boolean;
  wrongName: boolean;
  wrongUrl: boolean;
}

/** What few accounts need: a name, an address, a wire format and models of their own. */
export function AccountMore({ form, set, withName, withAddress, withModels, wrongName, wrongUrl }: AccountMoreProps) {
  const { t } = useTranslation("settings");
  return (
    <details open={(withName && wrongName) || (withAddress && wrongUrl) || undefined}>
      <summary className="text-dense text-muted">{t("moreOptions")}</summary>
      <div className="mt-3 flex flex-col gap-3">
        {withName && (
          <Field label={t("accountName")} hint={t("accountNameOptional")} error={wrongName ? t("accountNameWrong") : undefined}>
            {(control) => <Input {...control} maxLength={64} spellCheck={false} autoCapitalize="none" value={form.name} onChange={(event) => set({ name: event.target.value })} />}
          </Field>
        )}
        {withAddress && (
          <Field label={t("address")} hint={t("addressOptional")} error={wrongUrl ? t("addressWrong") : undefined}>
            {(control) => <Input {...control} type="url" maxLength={2048} value={form.baseUrl} onChange={(event) => set({ baseUrl: event.target.value })} />}
          </Field>
        )}
        <Field label={t("format")} hint={t("formatHint")}>
          {(control) => (
            <Select {...control} value={form.format} onChange={(event) => set({ format: event.target.value })}>
              <option value="">{t("formatOfProvider")}</option>
              {FORMATS.map((format) => (
                <option key={format} value={format}>
                  {format}
                </option>
              ))}
            </Select>
          )}
        </Field>
        {withModels && <ModelNames form={form} set={set} />}
      </div>
    </details>
  );
}

/** The names of the models that an account offers. A server that is no known provider's has no others. */
export function ModelNames({ form, set, required }: { form: AccountForm; set: (change: Partial<AccountForm>) => void; required?: boolean }) {
  const { t } = useTranslation("settings");
  return (
    <Field label={t("modelsOfAccount")} hint={t(required ? "modelsOfServerHint" : "modelsOfAccountHint")}>
      {(control) => (
        <Textarea
          {...control}
          required={required}
          maxLength={16384}
          spellCheck={false}
          autoCapitalize="none"
          rows={2}
          className="min-h-14 font-mono text-code"
          value={form.models}
          onChange={(event) => set({ models: event.target.value })}
        />
      )}
    </Field>
  );
}
