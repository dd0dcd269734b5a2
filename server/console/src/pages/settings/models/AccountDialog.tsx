import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { addAccount } from "@/api/models";
import type { ModelAccount, ModelProvider } from "@/api/schema";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Field, Input, Select } from "@/ui/Field";
import { RefusedNote } from "../rows/Row";
import { AccountMore, ModelNames } from "./AccountMore";
import { type AccountForm, formOf, isAccountName, isServerAddress, OTHER, requestOf } from "./account-form";
import { ProbeNote } from "./ProbeNote";

/** Adds an account at a provider, or replaces the key of one. The key goes to the server, and never comes back. */
export function AccountDialog({ providers, forEveryone, account, onClose }: { providers: ModelProvider[]; forEveryone: boolean; account?: ModelAccount; onClose: () => void }) {
  const { t } = useTranslation("settings");
  const known = providers.map((provider) => provider.name);
  const [form, setForm] = useState(() => formOf(account, known));
  const add = useMutation({
    mutationFn: () => addAccount(requestOf(form, forEveryone, account)),
    onSuccess: () => setForm((typed) => ({ ...typed, key: "" })),
    // The key that was typed does not stay in memory once the dialog is closed.
    gcTime: 0,
  });
  const id = useId();
  const set = (change: Partial<AccountForm>) => setForm({ ...form, ...change });
  const other = form.provider === OTHER;
  const needsKey = !other && providers.find((provider) => provider.name === form.provider)?.needs_key !== false;
  const wrongName = form.name !== "" && !isAccountName(form.name.trim());
  const wrongUrl = form.baseUrl !== "" && !isServerAddress(form.baseUrl.trim());
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!wrongName && !wrongUrl) add.mutate();
  };
  if (add.data) {
    return (
      <Dialog
        open
        onClose={onClose}
        title={t("accountStored", { name: add.data.account.name })}
        actions={
          <Button look="primary" onClick={onClose}>
            {t("done", { ns: "common" })}
          </Button>
        }
      >
        <ProbeNote probe={add.data.probe} />
        <p className="mt-3 text-dense text-muted">{t("accountStoredHow", { count: add.data.account.models.length })}</p>
      </Dialog>
    );
  }
  return (
    <Dialog
      open
      onClose={onClose}
      dismissable={false}
      title={account ? t("replaceKeyTitle", { name: account.name }) : t(forEveryone ? "addAccountEveryoneTitle" : "addAccountTitle")}
      description={t("addAccountWhy")}
      actions={
        <>
          <Button onClick={onClose}>{t("cancel", { ns: "common" })}</Button>
          <Button type="submit" form={id} look="primary" busy={add.isPending}>
            {t(add.isPending ? "testing" : account ? "testAndReplace" : "testAndAdd")}
          </Button>
        </>
      }
    >
      <form id={id} onSubmit={submit} className="flex flex-col gap-3">
        {!account && (
          <Field label={t("provider")}>
            {(control) => (
              <Select {...control} value={form.provider} onChange={(event) => set({ provider: event.target.value })}>
                {known.map((name) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
                <option value={OTHER}>{t("otherServer")}</option>
              </Select>
            )}
          </Field>
        )}
        {!account && other && (
          <Field label={t("accountName")} hint={t("accountNameHint")} error={wrongName ? t("accountNameWrong") : undefined}>
            {(control) => <Input {...control} required maxLength={64} spellCheck={false} autoCapitalize="none" value={form.name} onChange={(event) => set({ name: event.target.value })} />}
          </Field>
        )}
        {other && (
          <Field label={t("address")} hint={t("addressHint")} error={wrongUrl ? t("addressWrong") : undefined}>
            {(control) => <Input {...control} required type="url" maxLength={2048} placeholder="https://models.example/v1" value={form.baseUrl} onChange={(event) => set({ baseUrl: event.target.value })} />}
          </Field>
        )}
        {other && <ModelNames required form={form} set={set} />}
        <Field label={t("key")} hint={t(needsKey ? "keyHint" : "keyHintOptional")}>
          {(control) => (
            <Input
              {...control}
              type="password"
              required={needsKey}
              maxLength={4096}
              spellCheck={false}
              autoComplete="off"
              data-1p-ignore
              data-lpignore="true"
              className="font-mono"
              value={form.key}
              onChange={(event) => set({ key: event.target.value })}
            />
          )}
        </Field>
        <AccountMore form={form} set={set} withName={!account && !other} withAddress={!other} withModels={!other} wrongName={wrongName} wrongUrl={wrongUrl} />
        {add.error && <RefusedNote error={add.error} />}
      </form>
    </Dialog>
  );
}
