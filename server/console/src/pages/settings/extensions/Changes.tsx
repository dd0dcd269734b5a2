import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Extension } from "@/api/schema";
import { lineDiff } from "@/format/line-diff";
import { bytes } from "@/format/number";
import { Badge } from "@/ui/Badge";
import { Diff } from "@/ui/Diff";
import { type Source, SKILL_FILE, textOf, unpacked } from "./source";

type New = Pick<Source, "text" | "files">;

/** The files of an extension before and after a change; those that stay the same are left out. */
interface Change {
  path: string;
  before: Uint8Array | string | undefined;
  after: Uint8Array | string | undefined;
}

/** What becomes different if `after` takes the place of an extension. */
export function changesOf(before: Extension, after: New): Change[] {
  const old = unpacked(before.packed);
  const main: Change[] = before.text === after.text ? [] : [{ path: before.kind === "skill" ? SKILL_FILE : before.name, before: before.text, after: after.text }];
  const others = [...new Set([...old.keys(), ...after.files.keys()])].sort().flatMap((path): Change[] => {
    const [was, is] = [old.get(path), after.files.get(path)];
    return was && is && same(was, is) ? [] : [{ path, before: was, after: is }];
  });
  return [...main, ...others];
}

/** The changes, file by file, as lines that go and come. */
export function Changes({ changes }: { changes: readonly Change[] }) {
  const { t } = useTranslation("settings");
  return (
    <ul className="flex flex-col gap-3">
      {changes.map((change) => (
        <li key={change.path} className="overflow-hidden rounded-card border border-line">
          <p className="flex items-center gap-2 border-b border-line bg-canvas px-3 py-1.5">
            <code className="min-w-0 flex-1 text-code wrap-anywhere">{change.path}</code>
            {change.before === undefined && <Badge tone="good">{t("fileNew")}</Badge>}
            {change.after === undefined && <Badge tone="bad">{t("fileGone")}</Badge>}
          </p>
          <Lines change={change} />
        </li>
      ))}
    </ul>
  );
}

function Lines({ change: { path, before, after } }: { change: Change }) {
  const { t } = useTranslation("settings");
  const lines = useMemo(() => {
    const [was, is] = [textIn(before), textIn(after)];
    return was === undefined || is === undefined ? undefined : lineDiff(was, is, 1);
  }, [before, after]);
  if (lines) return <Diff lines={lines} label={path} />;
  const size = (of: Uint8Array | string | undefined) => bytes(of?.length ?? 0);
  return <p className="px-3 py-2 text-dense text-muted">{t("binaryChanged", { before: size(before), after: size(after) })}</p>;
}

function textIn(content: Uint8Array | string | undefined): string | undefined {
  if (content === undefined) return "";
  return typeof content === "string" ? content : textOf(content);
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}
