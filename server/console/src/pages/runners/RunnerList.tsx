import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Runner } from "@/api/schema";
import { Button } from "@/ui/Button";
import { Input, Select } from "@/ui/Field";
import { Card, Section } from "@/ui/Page";
import type { Deed } from "./actions";
import { useRowKeys } from "./keys";
import { filterRunners, type RunnerSort, sortRunners } from "./order";
import { RunnerRow } from "./RunnerRow";

/** Rows that are shown at first, and each time that more are asked for. */
const STEP = 50;

interface ListProps {
  runners: Runner[];
  /** True if the person has more runners than the page knows. */
  cut: boolean;
  onOpen: (runner: Runner) => void;
  onDeed: (runner: Runner, deed: Deed) => void;
}

/** The runners that are not in use, with a search and an order that the address holds. */
export function RunnerList({ runners, cut, onOpen, onDeed }: ListProps) {
  const { t } = useTranslation("runners");
  const { search: text = "", sort = "name" } = useSearch({ from: "/frame/runners" });
  const navigate = useNavigate();
  const input = useRef<HTMLInputElement>(null);
  const [typed, setTyped] = useState(text);
  const [shown, setShown] = useState(STEP);
  useRowKeys(input);
  const found = useMemo(() => sortRunners(filterRunners(runners, typed), sort), [runners, typed, sort]);
  const keep = (change: { search?: string | undefined; sort?: "state" | undefined }) =>
    void navigate({ to: "/runners", search: (before) => ({ ...before, ...change }), replace: true });
  const type = (words: string) => {
    setTyped(words);
    setShown(STEP);
    keep({ search: words || undefined });
  };
  if (runners.length === 0) return null;
  return (
    <Section
      title={t("others")}
      actions={
        <div className="flex w-full gap-2 md:w-[26rem]">
          <Input ref={input} type="search" aria-label={t("filter")} placeholder={t("filter")} maxLength={200} value={typed} onChange={(event) => type(event.target.value)} />
          <div className="w-32 shrink-0">
            <Select aria-label={t("sort")} value={sort} onChange={(event) => keep({ sort: (event.target.value as RunnerSort) === "state" ? "state" : undefined })}>
            <option value="name">{t("sortName")}</option>
            <option value="state">{t("sortState")}</option>
            </Select>
          </div>
        </div>
      }
    >
      <Card className="overflow-hidden">
        <ul>
          {found.slice(0, shown).map((runner) => (
            <RunnerRow key={runner.id} runner={runner} onOpen={onOpen} onDeed={onDeed} />
          ))}
        </ul>
        {found.length === 0 && <p className="px-4 py-6 text-center text-dense text-muted">{t("nothingFound")}</p>}
      </Card>
      {found.length > shown && (
        <div className="mt-3 flex justify-center">
          <Button onClick={() => setShown(shown + STEP)}>{t("showMore", { ns: "common" })}</Button>
        </div>
      )}
      {cut && <p className="mt-2 text-meta text-muted">{t("cut")}</p>}
    </Section>
  );
}
