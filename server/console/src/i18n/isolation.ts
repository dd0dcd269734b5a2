import i18next from "i18next";
import { PROPERTIES, type Property, propertiesOf } from "@/api/isolation";

/** A property of isolation in words. One that this console does not know keeps its name. */
export function propertyWords(property: string): string {
  return isKnown(property) ? i18next.t(`common:isolation_${property}`) : property;
}

/** An isolation in words: `network+file_writes` is “the network, writing files”. */
export function isolationWords(isolation: string): string {
  const properties = propertiesOf(isolation);
  return properties.length === 0 ? i18next.t("common:isolation_none") : properties.map(propertyWords).join(i18next.t("common:listComma"));
}

function isKnown(property: string): property is Property {
  return PROPERTIES.some((one) => one === property);
}
