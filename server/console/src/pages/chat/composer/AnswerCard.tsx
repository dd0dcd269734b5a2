import { Link } from "@tanstack/react-router";
import { X } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { CommandTable, Shown } from "@/api/schema";
import { told } from "@/i18n/told";
import { IconButton } from "@/ui/Button";
import { cx } from "@/ui/class";
import type { CommandAnswer } from "./answers";

/** The answer to a command. */
export function AnswerCard({ answer, onClose }: { answer: CommandAnswer; onClose: () => void }) {
  const { t } = useTranslation("common");
  return (
    <section role="status" aria-label={answer.line} className="fade-in rounded-card border border-line bg-surface">
      <header className="flex items-center gap-2 py-1 pr-1 pl-3">
        <code className="min-w-0 flex-1 truncate text-code text-muted">{answer.line}</code>
        <IconButton size="sm" icon={X} label={t("close")} onClick={onClose} />
      </header>
      <div tabIndex={0} className="flex max-h-[40dvh] flex-col gap-1 overflow-auto px-3 pb-3 text-dense">
        {answer.shown.map((part, place) => (
          <Part key={place} part={part} />
        ))}
      </div>
    </section>
  );
}

function Part({ part }: { part: Shown }) {
  if ("table" in part) return <Table table={part.table} />;
  return <p className="wrap-anywhere whitespace-pre-wrap">{told(part.text)}</p>;
}

/** The columns with words of the server's, not with names that people gave. */
const TOLD_COLUMNS = ["", "STATE", "SET BY", "PART", "ISOLATION", "NOW", "BEGUN", "SENT", "LAST USED", "COST"];

/** True for a cell in the server's words. Without headings a row is a name and its value. */
function isToldIn({ columns }: CommandTable, column: number): boolean {
  return columns.length === 0 || TOLD_COLUMNS.includes(columns[column] ?? "");
}

/** A cell; the id of a session leads to it. */
function Cell({ table, column, text }: { table: CommandTable; column: number; text: string }) {
  if (table.columns[column] !== "SESSION" || !text.startsWith("ses_")) return isToldIn(table, column) ? told(text) : text;
  return (
    <Link to="/chat/$session" params={{ session: text }} search={(before) => ({ ...before, new: undefined })} className="text-accent">
      {text}
    </Link>
  );
}

function Table({ table }: { table: CommandTable }) {
  return (
    <table className="w-full text-left">
      {table.columns.length > 0 && (
        <thead className="text-meta text-faint">
          <tr>
            {table.columns.map((column, place) => (
              <th key={place} scope="col" className="py-1 pr-4 font-medium first-letter:uppercase">
                {told(column)}
              </th>
            ))}
          </tr>
        </thead>
      )}
      <tbody>
        {table.rows.map((row, place) => (
          <tr key={place} className="align-top">
            {row.map((cell, column) => (
              <td key={column} className={cx("py-0.5 pr-4 wrap-anywhere last:pr-0 first:whitespace-nowrap", table.columns.length > 0 && "max-md:first:whitespace-normal")}>
                <Cell table={table} column={column} text={cell} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
