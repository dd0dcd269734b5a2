import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "./Button";

/** A button that copies a text. It says so only once the clipboard has it. */
export function CopyButton({ text, label }: { text: string; label?: string }) {
  const { t } = useTranslation("common");
  const [state, setState] = useState<"idle" | "copied" | "failed">("idle");
  useEffect(() => {
    if (state === "idle") return;
    const timer = setTimeout(() => setState("idle"), 2000);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = () => {
    navigator.clipboard.writeText(text).then(
      () => setState("copied"),
      () => setState("failed"),
    );
  };
  const words = state === "copied" ? t("copied") : state === "failed" ? t("copyFailed") : (label ?? t("copy"));
  return (
    <>
      <IconButton size="sm" icon={state === "copied" ? Check : Copy} label={words} onClick={copy} />
      <span role="status" className="sr-only">
        {state === "idle" ? "" : words}
      </span>
    </>
  );
}

/** A line to be copied whole, such as a command. */
export function CopyLine({ text, label }: { text: string; label?: string }) {
  return (
    <div className="flex items-start gap-1 rounded-control border border-line bg-sunken py-1 pr-1 pl-3">
      <code tabIndex={0} className="min-w-0 flex-1 py-1 text-code break-all whitespace-pre-wrap select-all">
        {text}
      </code>
      <CopyButton text={text} {...(label ? { label } : {})} />
    </div>
  );
}
