import { useTranslation } from "react-i18next";
import { reachOf } from "@/state/reach";
import { Note } from "./Note";

/** Says of a link with this page's address that others cannot open it, and what to do. It says nothing where they can. */
export function ReachNote({ className }: { className?: string }) {
  const { t } = useTranslation("common");
  const reach = reachOf(location.origin);
  if (reach === "any") return null;
  return (
    <Note strong={reach === "machine"} {...(className ? { className } : {})}>
      {t(reach === "machine" ? "linkOfMachine" : "linkOfNetwork", { host: location.host })}
    </Note>
  );
}
