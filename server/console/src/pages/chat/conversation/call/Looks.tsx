import { FileText, Search } from "lucide-react";
import { memo } from "react";
import { useTranslation } from "react-i18next";
import type { CallItem } from "@/transcript/model";
import { Disclosure } from "../Disclosure";
import { useFold } from "../context";
import { CallCard } from "./CallCard";
import { aboutOf } from "./about";

/** Consecutive calls that only looked: “Read 6 files”. */
export const Looks = memo(function Looks({ id, calls }: { id: string; calls: readonly CallItem[] }) {
  const { t } = useTranslation("transcript");
  const [open, toggle] = useFold(id, false);
  const count = (kinds: readonly string[]) => calls.filter((call) => kinds.includes(call.request.kind)).length;
  const [read, searched, listed] = [count(["read"]), count(["grep", "glob"]), count(["list"])];
  const words = [
    ...(read > 0 ? [t("looksRead", { count: read })] : []),
    ...(searched > 0 ? [t("looksSearched", { count: searched })] : []),
    ...(listed > 0 ? [t("looksListed", { count: listed })] : []),
  ];
  const names = calls.map(aboutOf).slice(0, 12).join(", ");
  return (
    <Disclosure icon={read > 0 ? FileText : Search} open={open} onToggle={toggle} head={words.join(" · ")} tail={open ? undefined : names}>
      <div className="flex flex-col gap-1.5 pl-6">
        {calls.map((call) => (
          <CallCard key={call.id} item={call} />
        ))}
      </div>
    </Disclosure>
  );
});
