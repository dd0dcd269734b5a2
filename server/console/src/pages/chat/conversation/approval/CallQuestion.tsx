import { FilePen, ShieldAlert, SquareTerminal, Wrench } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { QuestionCall } from "@/api/schema";
import { type DiffLine, lineDiff } from "@/format/line-diff";
import { isolationWords } from "@/i18n/isolation";
import { told } from "@/i18n/told";
import type { Request } from "@/transcript/request";
import { Badge } from "@/ui/Badge";
import { Diff } from "@/ui/Diff";

/** The first line of an edit of more than one place. */
const EVERY = "every occurrence:\n";

const TONES = { low: "neutral", medium: "warn", high: "bad" } as const;

/** May this call run? What it does, where, its risk with the reasons, and why a person is asked. */
export function CallQuestion({ question, request }: { question: QuestionCall; request: Request | undefined }) {
  const { t } = useTranslation("transcript");
  const paths = (question.paths ?? []).map((planned) => planned.path);
  const Icon = paths.length > 0 ? FilePen : question.editable ? SquareTerminal : Wrench;
  const names = question.environment ?? [];
  return (
    <>
      <header className="flex items-start gap-2.5 px-4 pt-3 pb-2">
        <Icon aria-hidden className="mt-0.5 size-4 shrink-0 text-warn" />
        <div className="min-w-0 flex-1">
          <h3 className="font-semibold wrap-anywhere">
            {paths.length > 0 ? t(isWrite(question) ? "mayWrite" : "mayChange", { path: paths.join(t("listComma", { ns: "common" })) }) : question.editable ? t("mayRunCommand") : t("mayRun", { tool: question.tool })}
          </h3>
          {isWrite(question) && <p className="text-dense">{t("mayReplace")}</p>}
          <p className="text-dense text-muted wrap-anywhere">
            <Where question={question} />
          </p>
        </div>
      </header>
      <Deed question={question} request={request} />
      {names.length > 0 && <p className="px-4 pt-2 text-dense text-muted wrap-anywhere">{t("withVariables", { names: names.join(t("listComma", { ns: "common" })) })}</p>}
      <div className="flex flex-wrap items-center gap-x-2 gap-y-1 px-4 py-3 text-dense">
        <Badge tone={TONES[question.risk]}>
          {question.risk === "high" && <ShieldAlert aria-hidden className="size-3.5" />}
          {t(`risk_${question.risk}`)}
        </Badge>
        {(question.reasons ?? []).length > 0 && <span className="min-w-0 wrap-anywhere">{question.reasons?.map(told).join(t("listSemicolon", { ns: "common" }))}</span>}
        <span className="min-w-0 basis-full text-muted wrap-anywhere">{t("askedBecause", { why: told(question.why) })}</span>
      </div>
    </>
  );
}

function Where({ question }: { question: QuestionCall }) {
  const { t } = useTranslation("transcript");
  if (!question.runner_name) return t("onServer");
  const place = { runner: question.runner_name, isolation: isolationWords(question.isolation || "none"), folder: question.directory ?? "" };
  return place.folder ? t("onRunnerIn", place) : t("onRunner", place);
}

/** True for a write of a whole file. A question does not tell whether the file is there. */
function isWrite(question: QuestionCall): boolean {
  return question.tool === "Write";
}

/** All that would happen: the command, the change, the whole content of a file, or the arguments. */
function Deed({ question, request }: { question: QuestionCall; request: Request | undefined }) {
  const { t } = useTranslation("transcript");
  const known = useMemo(() => (question.cut ? wholeDeed(request) : undefined), [question.cut, request]);
  const change = useMemo(() => (known ? known.change : editOf(question)), [known, question]);
  return (
    <>
      {change ? (
        <div className="max-h-[50dvh] overflow-y-auto overscroll-contain border-y border-line">
          {change.every && <p className="px-3 py-1 text-meta text-warn">{t("everyOccurrence")}</p>}
          <Diff lines={change.lines} label={t("changeOf", { path: question.paths?.[0]?.path ?? "" })} />
        </div>
      ) : (
        <pre tabIndex={0} aria-label={isWrite(question) ? t("wholeContent") : t("deed")} className="max-h-[50dvh] overflow-y-auto overscroll-contain border-y border-line bg-sunken px-4 py-2 text-code wrap-anywhere whitespace-pre-wrap">
          {known?.text ?? question.text.trimEnd()}
        </pre>
      )}
      {question.cut && !known && <p className="px-4 pt-2 text-dense text-warn">{t("deedCut")}</p>}
    </>
  );
}

interface Change {
  readonly lines: readonly DiffLine[];
  readonly every: boolean;
}

function wholeDeed(request: Request | undefined): { text?: string; change?: Change } | undefined {
  if (request?.kind === "shell") return { text: request.command };
  if (request?.kind === "edit") return { change: { lines: lineDiff(request.old, request.new, null), every: request.every } };
  if (request?.kind === "write") return { text: request.content };
  return undefined;
}

/** The edit that a question tells: all lines that go, with `-`, and then all that come, with `+`. */
function editOf(question: QuestionCall): Change | undefined {
  const every = question.text.startsWith(EVERY);
  const lines = (every ? question.text.slice(EVERY.length) : question.text).split("\n");
  if (lines.at(-1) === "") lines.pop();
  if (question.tool !== "Edit" || !lines.every((line) => line.startsWith("-") || line.startsWith("+"))) return undefined;
  const side = (mark: string) => lines.filter((line) => line.startsWith(mark)).map((line) => line.slice(1)).join("\n");
  return { lines: lineDiff(side("-"), side("+"), null), every };
}
