import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { removeRule } from "@/api/permissions";
import type { PermissionRule } from "@/api/schema";
import { Button, IconButton } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { Input } from "@/ui/Field";
import { Section } from "@/ui/Page";
import { Ago } from "@/ui/Time";
import { personOf } from "../rows/facts";
import { EmptyRow } from "../rows/EmptyRow";
import { Dots, Rows } from "../rows/Row";
import { AddRule } from "./AddRule";
import { DecisionBadge } from "./DecisionBadge";
import { inOrder } from "./order";

/** With more rules than these there is a search. */
const SEARCH_FROM = 12;

interface RuleListProps {
  /** The rules, without those of projects. */
  rules: readonly PermissionRule[];
  title: string;
  note: string;
  /** Whose rules are added and removed here. */
  layer: "user" | "tenant";
  editable?: boolean;
}

/** Rules in the order in which they count, with adding and removing. */
export function RuleList({ rules, title, note, layer, editable = true }: RuleListProps) {
  const { t } = useTranslation("settings");
  const [adding, setAdding] = useState(false);
  const [leaving, setLeaving] = useState<PermissionRule>();
  const [search, setSearch] = useState("");
  const shown = inOrder(rules).filter((rule) => rule.rule.toLowerCase().includes(search.trim().toLowerCase()));
  const add = editable && (
    <Button icon={Plus} size="sm" onClick={() => setAdding(true)}>
      {t("addRule")}
    </Button>
  );
  return (
    <Section title={title} note={note} actions={rules.length > 0 && add}>
      {rules.length > SEARCH_FROM && (
        <Input type="search" className="mb-2" aria-label={t("searchRules")} placeholder={t("searchRules")} maxLength={500} value={search} onChange={(event) => setSearch(event.target.value)} />
      )}
      {rules.length === 0 ? (
        <EmptyRow title={t("noRules")} action={add || undefined}>
          {t("noRulesWhy")}
        </EmptyRow>
      ) : shown.length === 0 ? (
        <p className="px-1 py-4 text-dense text-muted">{t("nothingFound")}</p>
      ) : (
        <Rows>
          {shown.map((rule, index) => (
            <RuleRow key={rule.id ?? `${rule.rule} ${index}`} rule={rule} layer={layer} onRemove={editable && rule.id && rule.set_by === layer ? () => setLeaving(rule) : undefined} />
          ))}
        </Rows>
      )}
      {adding && <AddRule forEveryone={layer === "tenant"} onClose={() => setAdding(false)} />}
      {leaving?.id && (
        <Confirm open danger title={t("removeRuleTitle")} verb={t("remove", { ns: "common" })} onClose={() => setLeaving(undefined)} onConfirm={() => removeRule(leaving.id ?? "")}>
          <p className="font-mono text-code text-ink wrap-anywhere">{leaving.rule}</p>
          <p className="mt-2">{t(leaving.decision === "allow" ? "removeAllowWhy" : "removeDenyWhy")}</p>
        </Confirm>
      )}
    </Section>
  );
}

const SET_BY = { operator: "fromOperator", tenant: "fromTenant", user: "ruleOwn", project: "ruleProject" } as const;

function RuleRow({ rule, layer, onRemove }: { rule: PermissionRule; layer: "user" | "tenant"; onRemove: (() => void) | undefined }) {
  const { t } = useTranslation("settings");
  const person = rule.who ? personOf(rule.who) : undefined;
  const from = layer === "tenant" && rule.set_by === "tenant" ? "fromThisPage" : SET_BY[rule.set_by];
  return (
    <div className="flex items-center gap-3 px-4 py-2.5">
      <DecisionBadge decision={rule.decision} />
      <div className="min-w-0 flex-1">
        <code className="text-code wrap-anywhere">{rule.rule}</code>
        <Dots className="text-meta text-faint">
          {t(from)}
          {person && rule.set_by !== "user" && t(person.removed ? "setByRemoved" : "setBy", { name: person.name })}
          {rule.since && <Ago at={rule.since} />}
        </Dots>
      </div>
      {onRemove && <IconButton size="sm" icon={Trash2} label={t("removeNamed", { name: rule.rule })} onClick={onRemove} />}
    </div>
  );
}
