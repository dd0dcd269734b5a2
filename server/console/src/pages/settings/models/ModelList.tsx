import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { OfferedModel } from "@/api/schema";
import { compact } from "@/format/number";
import { told } from "@/i18n/told";
import { serverTime } from "@/state/clock";
import { Badge } from "@/ui/Badge";
import { Input } from "@/ui/Field";
import { useCountdown } from "@/ui/Time";
import { Dots, Rows } from "../rows/Row";
import { price } from "./price";
import { TestButton } from "./TestButton";

/** With more models than these there is a search. */
const SEARCH_FROM = 8;

/** The models that the person may use, with their states. `asOf` is when the server told them, in milliseconds since 1970. */
export function ModelList({ models, asOf }: { models: OfferedModel[]; asOf: number }) {
  const { t } = useTranslation("settings");
  const [search, setSearch] = useState("");
  const wanted = search.trim().toLowerCase();
  const shown = models.filter((model) => [model.name, model.provider, model.account].some((text) => text.toLowerCase().includes(wanted)));
  return (
    <>
      {models.length > SEARCH_FROM && (
        <Input type="search" className="mb-2" aria-label={t("searchModels")} placeholder={t("searchModels")} maxLength={200} value={search} onChange={(event) => setSearch(event.target.value)} />
      )}
      {shown.length === 0 ? (
        <p className="px-1 py-4 text-dense text-muted">{t("nothingFound")}</p>
      ) : (
        <Rows>
          {shown.map((model) => (
            <ModelRow key={`${model.paid_by}/${model.account}/${model.name}`} model={model} asOf={asOf} />
          ))}
        </Rows>
      )}
    </>
  );
}

/** The name by which this very model is tested: another account may offer one of the same name. */
function askedAs(model: OfferedModel): string {
  return model.paid_by === "own" || model.paid_by === "tenant" ? `${model.account}/${model.name}` : model.name;
}

const PAYERS = { own: "paidOwn", tenant: "paidTenant", operator: "paidOperator", runner: "paidRunner" } as const;

function ModelRow({ model, asOf }: { model: OfferedModel; asOf: number }) {
  const { t, i18n } = useTranslation("settings");
  const language = i18n.language;
  return (
    <TestButton name={askedAs(model)} canTest={!model.practice}>
      <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
        <span className="min-w-0 font-medium wrap-anywhere">{model.name}</span>
        {model.is_default && <Badge>{t("firstModel")}</Badge>}
        <ModelState model={model} asOf={asOf} />
      </p>
      <Dots className="text-meta text-faint">
        {model.practice ? t("practiceModel") : model.provider}
        {!model.practice && t(PAYERS[model.paid_by], { account: model.account })}
        {model.window && t("window", { tokens: compact(model.window, language) })}
        {model.sees && t("sees")}
        {!model.practice &&
          (model.price
            ? t("price", { input: price(model.price.input, language), output: price(model.price.output, language), date: model.price.date })
            : t("unpriced"))}
      </Dots>
      {model.reason && <p className="mt-1 text-meta text-warn wrap-anywhere">{told(model.reason)}</p>}
    </TestButton>
  );
}

function ModelState({ model, asOf }: { model: OfferedModel; asOf: number }) {
  const { t } = useTranslation("settings");
  if (model.state === "ready") return null;
  if (model.state === "refused") return <Badge tone="bad">{t("modelRefused")}</Badge>;
  if (model.state === "away") return <Badge tone="warn">{t("modelAway")}</Badge>;
  return <CoolingDown left={model.ready_in_s ?? 0} asOf={asOf} />;
}

/** The seconds until a model is asked again, counted down from what the server told. */
function CoolingDown({ left, asOf }: { left: number; asOf: number }) {
  const { t } = useTranslation("settings");
  const ahead = serverTime() - Date.now();
  const until = new Date(asOf + ahead + left * 1000).toISOString();
  const seconds = Math.ceil(useCountdown(until) / 1000);
  return <Badge tone="warn">{seconds > 0 ? t("modelCoolsFor", { seconds }) : t("modelCools")}</Badge>;
}
