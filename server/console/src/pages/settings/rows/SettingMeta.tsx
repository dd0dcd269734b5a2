import { useTranslation } from "react-i18next";
import type { Setting } from "@/api/schema";
import { Ago } from "@/ui/Time";
import { appliesWhen, type Layer, personOf } from "./facts";
import { Dots } from "./Row";

const FROM = { default: "fromDefault", operator: "fromOperator", tenant: "fromTenant", user: "fromUser", session: "fromSession" } as const;

/** Where a value comes from, who set it, when, and from when on a change counts. */
export function SettingMeta({ setting, layer }: { setting: Setting; layer: Layer }) {
  const { t } = useTranslation("settings");
  const person = setting.who ? personOf(setting.who) : undefined;
  const from = layer === "tenant" && setting.set_by === "tenant" ? "fromThisPage" : FROM[setting.set_by];
  return (
    <Dots>
      {t(from)}
      {person && setting.set_by !== "user" && t(person.removed ? "setByRemoved" : "setBy", { name: person.name })}
      {setting.since && <Ago at={setting.since} />}
      {t(appliesWhen(setting.name))}
    </Dots>
  );
}
