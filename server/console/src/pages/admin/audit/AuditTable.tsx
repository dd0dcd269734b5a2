import { Link } from "@tanstack/react-router";
import { Fragment, useState } from "react";
import { useTranslation } from "react-i18next";
import { useMe } from "@/api/me";
import type { AuditEntry } from "@/api/schema";
import { moment } from "@/format/time";
import { Badge } from "@/ui/Badge";
import { cx } from "@/ui/class";
import { Card } from "@/ui/Page";
import { kindInWords } from "./kinds";

/** The entries as a table; a row opens to its details. On a phone the address stands in the details. */
export function AuditTable({ entries, names }: { entries: AuditEntry[]; names: Record<string, string> }) {
  const { t, i18n } = useTranslation("admin");
  const [open, setOpen] = useState<number>();
  const cell = "px-3 py-2 align-top";
  return (
    <Card className="overflow-x-auto">
      <table className="w-full text-left text-dense">
        <thead className="border-b border-line text-meta text-muted">
          <tr>
            <th className={cx(cell, "font-medium")}>{t("when")}</th>
            <th className={cx(cell, "font-medium")}>{t("who")}</th>
            <th className={cx(cell, "font-medium")}>{t("what")}</th>
            <th className={cx(cell, "font-medium max-md:hidden")}>{t("towards")}</th>
            <th className={cx(cell, "font-medium max-md:hidden")}>{t("from")}</th>
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {entries.map((entry) => (
            <Fragment key={entry.seq}>
              <tr className="hover:bg-hover">
                <td className={cx(cell, "whitespace-nowrap text-muted tabular-nums max-md:whitespace-normal")}>{moment(entry.at, i18n.language)}</td>
                <td className={cx(cell, "max-w-40 truncate")}>{entry.who}</td>
                <td className={cell}>
                  <button
                    type="button"
                    aria-expanded={open === entry.seq}
                    title={kindInWords(entry.what, i18n.language)}
                    onClick={() => setOpen(open === entry.seq ? undefined : entry.seq)}
                    className="rounded-control text-left font-mono text-code hover:underline"
                  >
                    <Kind of={entry.what} />
                  </button>
                  {entry.outcome === "refused" && (
                    <Badge tone="bad" className="ml-2">
                      {t("refused")}
                    </Badge>
                  )}
                  <Answer entry={entry} />
                </td>
                <td className={cx(cell, "max-w-52 truncate max-md:hidden")}>{entry.to}</td>
                <td className={cx(cell, "font-mono text-code text-muted max-md:hidden")}>{entry.address}</td>
              </tr>
              {open === entry.seq && (
                <tr>
                  <td colSpan={5} className="bg-sunken px-3 py-2">
                    <Details entry={entry} names={names} />
                  </td>
                </tr>
              )}
            </Fragment>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function Details({ entry, names }: { entry: AuditEntry; names: Record<string, string> }) {
  const { t, i18n } = useTranslation("admin");
  const me = useMe();
  // The page has a "To" and a "From" of its own.
  const renamed: Readonly<Record<string, string>> = { from: t("before"), to: t("after") };
  const facts: [string, unknown][] = [
    [t("entry"), entry.seq],
    [t("what"), kindInWords(entry.what, i18n.language)],
    [t("towards"), withId(entry.to, entry.to_id)],
    [t("who"), withId(entry.who, entry.who_id)],
    [t("from"), entry.address],
    [t("credential"), entry.credential],
    ...Object.entries(entry.detail as Record<string, unknown>).map(([name, value]): [string, unknown] => [renamed[name] ?? name, value]),
  ];
  // Nobody reads the chat of another person, an admin neither.
  const chat = sessionsIn(entry).find((id) => me && names[id] === `session of ${me.user.name}`);
  return (
    <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-0.5 text-meta">
      {facts
        .filter(([, value]) => value !== undefined && value !== null && value !== "")
        .map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd className="font-mono wrap-anywhere">{named(value, names)}</dd>
          </div>
        ))}
      {chat && (
        <div className="contents">
          <dt className="text-muted">{t("chat")}</dt>
          <dd>
            <Link to="/chat/$session" params={{ session: chat }} className="text-accent underline">
              {t("openChat")}
            </Link>
          </dd>
        </div>
      )}
    </dl>
  );
}

const ANSWERS = { allowed: "answerAllowed", "allowed as changed": "answerChanged", denied: "answerDenied", answered: "answerSaid", unanswered: "answerNone" } as const;

/** What a person answered an agent. */
function Answer({ entry }: { entry: AuditEntry }) {
  const { t } = useTranslation("admin");
  const { outcome } = entry.detail as { outcome?: keyof typeof ANSWERS };
  const words = entry.what === "approval.answered" && outcome ? ANSWERS[outcome] : undefined;
  return words ? (
    <Badge tone={outcome === "denied" ? "warn" : "neutral"} className="ml-2">
      {t(words)}
    </Badge>
  ) : null;
}

/** The chats that the entry is about. One that was deleted is none. */
function sessionsIn(entry: AuditEntry): string[] {
  if (entry.what === "session.deleted") return [];
  return [entry.to_id, ...Object.values(entry.detail as Record<string, unknown>)].filter((id): id is string => typeof id === "string" && id.startsWith("ses_"));
}

function withId(name: string, id: string): string {
  return name === id ? id : `${name} (${id})`;
}

/** A kind such as `operation.ended`, which may break after its dots. */
function Kind({ of }: { of: string }) {
  return of.split(/(?<=\.)/).map((part) => (
    <Fragment key={part}>
      {part}
      <wbr />
    </Fragment>
  ));
}

/** A fact with the names of the ids in it. */
function named(value: unknown, names: Record<string, string>): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const name = names[text];
  return name ? `${name} (${text})` : text;
}
