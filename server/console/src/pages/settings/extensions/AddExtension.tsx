import { useMutation, useQuery } from "@tanstack/react-query";
import { FileText, FolderOpen } from "lucide-react";
import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { downloadExtension, putExtension, wholeExtensionQuery } from "@/api/extensions";
import type { Extension, ExtensionKind } from "@/api/schema";
import { headOf } from "@/format/head";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Field, Input, Select, Textarea } from "@/ui/Field";
import { Skeleton } from "@/ui/Skeleton";
import { RefusedNote } from "../rows/Row";
import { Changes, changesOf } from "./Changes";
import { KINDS } from "./look";
import { ServerFields } from "./ServerFields";
import { formOf, isPairName, isServerName, type ServerForm, textOfServer, wordsOf } from "./server-form";
import { packed, readDownload, readSource, type Source, type Unfit } from "./source";

const ORDER: readonly ExtensionKind[] = ["mcp", "skill", "agent", "hooks"];
const EMPTY: Source = { name: "", text: "", files: new Map(), source: "" };
const UNFIT = { noSkillFile: "unfitNoSkillFile", tooManyFiles: "unfitTooManyFiles", tooLarge: "unfitTooLarge", noText: "unfitNoText" } as const satisfies Record<Unfit, string>;

interface AddExtensionProps {
  all: readonly Extension[];
  forEveryone: boolean;
  /** The one that is to be updated. */
  start?: Extension;
  onClose: () => void;
}

/** Registers an extension. Where one of its name is there, it first shows what becomes different, and replaces exactly that one. */
export function AddExtension({ all, forEveryone, start, onClose }: AddExtensionProps) {
  const { t } = useTranslation("settings");
  const [kind, setKind] = useState<ExtensionKind>(start?.kind ?? "mcp");
  const [source, setSource] = useState<Source>({ ...EMPTY, name: start?.name ?? "" });
  const [server, setServer] = useState<ServerForm>(() => formOf(start));
  const [unfit, setUnfit] = useState<Unfit>();
  const id = useId();
  const isServer = kind === "mcp";
  const name = (start?.name ?? (isServer ? server.name : source.name)).trim();
  const text = isServer ? textOfServer({ ...server, name }) : source.text;
  const layer = forEveryone ? "tenant" : "user";
  const replaced = all.find((other) => other.layer === layer && other.kind === kind && other.name === name);
  const before = useQuery({ ...wholeExtensionQuery(replaced ?? { id: "", digest: "" }), enabled: replaced !== undefined });
  const fits = isServer ? isServerName(name) && hasWay(server) : name !== "" && text.trim() !== "";
  const changes = replaced && before.data && fits && !isServer ? changesOf(before.data, { text, files: source.files }) : undefined;
  const put = useMutation({
    mutationFn: () => {
      const archive = packed(source.files);
      return putExtension({ kind, name, text, source: isServer ? "" : source.source, for_everyone: forEveryone, ...(archive && kind === "skill" ? { packed: archive } : {}), ...(replaced ? { replaces: replaced.digest } : {}) });
    },
    onSuccess: onClose,
    // The values that were typed do not stay in memory once the dialog is closed.
    gcTime: 0,
  });
  const ready = fits && (replaced === undefined || (before.data !== undefined && (isServer || changes?.length !== 0)));
  const read = async (chosen: FileList | null) => {
    if (!chosen?.length) return;
    const found = await readSource(kind, [...chosen]);
    setUnfit(typeof found === "string" ? found : undefined);
    if (typeof found !== "string") setSource(found);
  };
  const download = useMutation({
    mutationFn: async (address: string) => readDownload(await downloadExtension(address), address),
    onSuccess: (found) => {
      setUnfit(typeof found === "string" ? found : undefined);
      if (typeof found !== "string") setSource(found);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (ready) put.mutate();
  };
  const otherName = start && !isServer && source.text !== "" && source.name !== start.name ? source.name : undefined;
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      dismissable={false}
      title={start ? t("updateTitle", { name: start.name }) : t(forEveryone ? "addExtensionEveryoneTitle" : "addExtensionTitle")}
      description={t("addExtensionWhy")}
      actions={
        <>
          <Button onClick={onClose}>{t("cancel", { ns: "common" })}</Button>
          <Button type="submit" form={id} look="primary" busy={put.isPending} disabled={!ready}>
            {t(replaced ? "replaceExtension" : "addExtension")}
          </Button>
        </>
      }
    >
      <form id={id} onSubmit={submit} className="flex flex-col gap-3">
        {!start && (
          <Field label={t("kind")} hint={t(`${KINDS[kind].word}What`)}>
            {(control) => (
              <Select {...control} value={kind} onChange={(event) => setKind(ORDER.find((one) => one === event.target.value) ?? "mcp")}>
                {ORDER.map((one) => (
                  <option key={one} value={one}>
                    {t(KINDS[one].word)}
                  </option>
                ))}
              </Select>
            )}
          </Field>
        )}
        {isServer ? (
          <ServerFields form={server} set={(change) => setServer({ ...server, ...change })} fixedName={start !== undefined} />
        ) : (
          <>
            <div className="flex flex-wrap gap-2">
              {kind === "skill" && <Choose folder words={t("chooseFolder")} onChoose={(files) => void read(files)} />}
              <Choose words={t("chooseFile")} onChoose={(files) => void read(files)} />
            </div>
            {kind === "skill" && <Address start={start?.source} busy={download.isPending} onRead={(address) => download.mutate(address)} />}
            {download.error && <ErrorNote error={download.error} title={t("skillNotRead")} />}
            {unfit && (
              <p role="alert" className="text-dense text-bad">
                {t(UNFIT[unfit])}
              </p>
            )}
            {!start && (
              <Field label={t("extensionName")} hint={t("extensionNameHint")}>
                {(control) => <Input {...control} required maxLength={64} spellCheck={false} autoCapitalize="none" value={source.name} onChange={(event) => setSource({ ...source, name: event.target.value })} />}
              </Field>
            )}
            {otherName && <p className="text-dense text-warn">{t("otherName", { name: otherName })}</p>}
            <Field label={t(kind === "hooks" ? "textJson" : "textMarkdown")} hint={source.files.size > 0 ? t("filesBeside", { count: source.files.size }) : undefined}>
              {(control) => (
                <Textarea
                  {...control}
                  required
                  maxLength={65536}
                  rows={8}
                  spellCheck={false}
                  autoCapitalize="none"
                  className="font-mono text-code"
                  value={source.text}
                  onChange={(event) => setSource({ ...source, text: event.target.value, name: source.name || headOf(event.target.value, "name") || "" })}
                />
              )}
            </Field>
          </>
        )}
        {replaced && !start && <p className="text-dense text-warn">{t("replacesOne", { name })}</p>}
        {before.error && <ErrorNote error={before.error} onRetry={() => void before.refetch()} />}
        {replaced && before.isPending && <Skeleton rows={1} />}
        {changes && (changes.length > 0 ? <Changes changes={changes} /> : <p className="text-dense text-muted">{t("noChange")}</p>)}
        {put.error && <RefusedNote error={put.error} />}
      </form>
    </Dialog>
  );
}

function hasWay({ way, url, command, pairs }: ServerForm): boolean {
  const isWay = way === "http" ? URL.canParse(url.trim()) : (wordsOf(command)?.length ?? 0) > 0;
  return isWay && pairs.every((pair) => (pair.name === "" && pair.value === "") || isPairName(way, pair.name.trim()));
}

/** The address of a skill, which the server reads. */
function Address({ start, busy, onRead }: { start: string | undefined; busy: boolean; onRead: (address: string) => void }) {
  const { t } = useTranslation("settings");
  const [address, setAddress] = useState(start?.startsWith("https://") ? start : "");
  const written = address.trim();
  return (
    <Field label={t("skillAddress")} hint={t("skillAddressHint")}>
      {(control) => (
        <div className="flex gap-2">
          <Input
            {...control}
            className="min-w-0 flex-1"
            inputMode="url"
            spellCheck={false}
            autoCapitalize="none"
            maxLength={2048}
            placeholder="https://example.org/SKILL.md"
            value={address}
            onChange={(event) => setAddress(event.target.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter" || written === "") return;
              // Enter reads the skill; it adds nothing yet.
              event.preventDefault();
              onRead(written);
            }}
          />
          <Button busy={busy} disabled={written === ""} onClick={() => onRead(written)}>
            {t("skillRead")}
          </Button>
        </div>
      )}
    </Field>
  );
}

/** A button that opens the browser's own dialog of files. */
function Choose({ words, folder, onChoose }: { words: string; folder?: boolean; onChoose: (files: FileList | null) => void }) {
  const id = useId();
  return (
    <>
      <Button size="sm" icon={folder ? FolderOpen : FileText} onClick={() => document.getElementById(id)?.click()}>
        {words}
      </Button>
      <input
        id={id}
        type="file"
        className="hidden"
        aria-label={words}
        {...(folder ? { webkitdirectory: "" } : {})}
        onChange={(event) => {
          onChoose(event.target.files);
          // The same file may be chosen again after it was changed.
          event.target.value = "";
        }}
      />
    </>
  );
}
