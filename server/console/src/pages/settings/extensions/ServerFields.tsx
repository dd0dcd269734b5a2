import { Plus, X } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Button, IconButton } from "@/ui/Button";
import { Field, Input } from "@/ui/Field";
import { Segments } from "@/ui/Segments";
import { isPairName, isServerName, MOST_PAIRS, type Pair, type ServerForm, wordsOf } from "./server-form";

interface ServerFieldsProps {
  form: ServerForm;
  set: (change: Partial<ServerForm>) => void;
  fixedName: boolean;
}

/** A tool server: its name, the way to it, and headers or variables, whose values nobody is shown again. */
export function ServerFields({ form, set, fixedName }: ServerFieldsProps) {
  const { t } = useTranslation("settings");
  const { way, name, url, command } = form;
  const wrongName = name !== "" && !isServerName(name.trim());
  const wrongUrl = url !== "" && !URL.canParse(url.trim());
  const openQuote = wordsOf(command) === undefined;
  return (
    <>
      {!fixedName && (
        <Field label={t("extensionName")} hint={t("serverNameHint")} error={wrongName ? t("serverNameWrong") : undefined}>
          {(control) => <Input {...control} required maxLength={32} spellCheck={false} autoCapitalize="none" value={name} onChange={(event) => set({ name: event.target.value })} />}
        </Field>
      )}
      <Segments
        label={t("serverWay")}
        segments={[
          { value: "http", label: t("serverHttp") },
          { value: "stdio", label: t("serverStdio") },
        ]}
        value={way}
        onChange={(chosen) => set({ way: chosen })}
      />
      {way === "http" ? (
        <Field label={t("address")} hint={t("serverAddressHint")} error={wrongUrl ? t("addressWrong") : undefined}>
          {(control) => <Input {...control} required type="url" maxLength={2048} placeholder="https://tools.example/mcp" value={url} onChange={(event) => set({ url: event.target.value })} />}
        </Field>
      ) : (
        <Field label={t("serverCommand")} hint={t("serverCommandHint")} error={openQuote ? t("serverQuote") : undefined}>
          {(control) => <Input {...control} required maxLength={4096} spellCheck={false} autoCapitalize="none" placeholder="npx -y @example/tools" className="font-mono text-code" value={command} onChange={(event) => set({ command: event.target.value })} />}
        </Field>
      )}
      <Pairs form={form} set={(pairs) => set({ pairs })} />
    </>
  );
}

function Pairs({ form: { way, pairs }, set }: { form: ServerForm; set: (pairs: readonly Pair[]) => void }) {
  const { t } = useTranslation("settings");
  const change = (at: number, part: Partial<Pair>) => set(pairs.map((pair, index) => (index === at ? { ...pair, ...part } : pair)));
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="mb-1 text-dense font-medium">{t(way === "http" ? "serverHeaders" : "serverVariables")}</legend>
      {pairs.map((pair, at) => (
        <div key={at} className="flex items-center gap-2">
          <Input
            aria-label={t("pairName")}
            placeholder={way === "http" ? "Authorization" : "API_KEY"}
            maxLength={128}
            spellCheck={false}
            autoCapitalize="none"
            className="font-mono text-code"
            aria-invalid={(pair.name !== "" && !isPairName(way, pair.name.trim())) || undefined}
            value={pair.name}
            onChange={(event) => change(at, { name: event.target.value, stored: false })}
          />
          <Input
            aria-label={t("pairValueOf", { name: pair.name })}
            required={pair.name !== "" && !pair.stored}
            placeholder={t(pair.stored ? "pairStored" : "pairValue")}
            type="password"
            maxLength={4096}
            autoComplete="off"
            data-1p-ignore
            data-lpignore="true"
            className="font-mono text-code"
            value={pair.value}
            onChange={(event) => change(at, { value: event.target.value })}
          />
          <IconButton size="sm" icon={X} label={t("removePair")} onClick={() => set(pairs.filter((_, index) => index !== at))} />
        </div>
      ))}
      <div>
        <Button size="sm" icon={Plus} disabled={pairs.length >= MOST_PAIRS} onClick={() => set([...pairs, { name: "", value: "" }])}>
          {t(way === "http" ? "addHeader" : "addVariable")}
        </Button>
      </div>
      <p className="text-meta text-muted">{t("pairsHint")}</p>
    </fieldset>
  );
}
