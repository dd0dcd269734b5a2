import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { answer, api } from "@/api/client";
import { ProblemError } from "@/api/problem";
import type { BrowserSignedIn } from "@/api/schema";
import { deviceName } from "@/state/device";
import { Button } from "@/ui/Button";
import { ErrorNote } from "@/ui/ErrorNote";
import { Field, Input } from "@/ui/Field";

/** Exchanges a one-time code for this browser's cookie. */
export function CodeForm({ code: given = "", onSignedIn }: { code?: string; onSignedIn: (signedIn: BrowserSignedIn) => void }) {
  const { t } = useTranslation("signIn");
  const [code, setCode] = useState(given);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const form = useId();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const body = { code: code.trim(), device: deviceName() };
      onSignedIn(await answer(api.POST("/api/v1/browser/sign-in", { body })));
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  const wrong = error instanceof ProblemError && error.status === 401;
  return (
    <form id={form} onSubmit={submit} className="flex flex-col gap-3">
      <Field label={t("code")} hint={t("codeHint")} error={wrong ? t("wrongCode") : undefined}>
        {(control) => (
          <Input
            {...control}
            autoFocus
            required
            name="code"
            autoCapitalize="none"
            autoComplete="one-time-code"
            spellCheck={false}
            maxLength={4096}
            className="font-mono"
            value={code}
            onChange={(event) => setCode(event.target.value)}
          />
        )}
      </Field>
      {error !== undefined && !wrong && <ErrorNote error={error} />}
      <Button type="submit" look="primary" busy={busy} className="w-full">
        {t("signIn")}
      </Button>
    </form>
  );
}
