import { useQuery } from "@tanstack/react-query";
import { ArrowUp, ImagePlus, ListPlus, Square } from "lucide-react";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { IMAGE_TYPES } from "@/api/images";
import { sessionQuery } from "@/api/sessions";
import { stopTurn } from "@/api/turns";
import { Button, IconButton } from "@/ui/Button";
import { sayFailed } from "@/ui/Toast";
import { Tooltip } from "@/ui/Tooltip";
import type { How } from "./useSend";

interface ActionsProps {
  session: string | undefined;
  working: boolean;
  /** What works now, in words. */
  stops: string | undefined;
  /** True if the message can go. */
  ready: boolean;
  busy: boolean;
  hasText: boolean;
  disabled: boolean;
  onSend: (how: How) => void;
  /** Stop was pressed. */
  onStop: () => void;
  onFiles: (files: readonly File[]) => void;
}

/** The buttons of the input: send, and while a turn works, queue and stop. */
export function Actions({ session, working, stops, ready, busy, hasText, disabled, onSend, onStop, onFiles }: ActionsProps) {
  const { t } = useTranslation("chat");
  const chooser = useRef<HTMLInputElement>(null);
  const steers = working && hasText;
  return (
    <div className="flex items-center gap-1 p-1.5">
      <IconButton icon={ImagePlus} label={t("inputImageAdd")} disabled={disabled} onClick={() => chooser.current?.click()} />
      <input
        ref={chooser}
        type="file"
        multiple
        hidden
        accept={IMAGE_TYPES.join(",")}
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
      <span className="flex-1" />
      {working && session && <Stop key={session} session={session} stops={stops} onPressed={onStop} />}
      {steers && (
        <Tooltip text={t("inputQueueHint")}>
          <Button icon={ListPlus} className="max-md:px-2 max-md:[&>svg]:hidden" disabled={!ready} onClick={() => onSend("queue")}>
            {t("inputQueue")}
          </Button>
        </Tooltip>
      )}
      {/* One button, whether a turn works or not: it may end while the button is pressed. */}
      <Tooltip text={steers ? t("inputSteerHint") : t("inputSend")}>
        <Button
          look="primary"
          icon={ArrowUp}
          square={!steers}
          className={steers ? "max-md:px-2" : undefined}
          aria-label={steers ? undefined : t("inputSend")}
          disabled={!ready}
          busy={busy}
          onClick={() => onSend("steer")}
        >
          {steers && t("inputSteer")}
        </Button>
      </Tooltip>
    </div>
  );
}

/** Stops the turn. It says *stopping* until the turn has ended, which may take a moment; the next one can be stopped again. */
function Stop({ session, stops, onPressed }: { session: string; stops: string | undefined; onPressed: () => void }) {
  const { t } = useTranslation("chat");
  const running = useQuery(sessionQuery(session)).data?.running_turn;
  const [busy, setBusy] = useState(false);
  const [asked, setAsked] = useState<string>();
  const stopping = busy || (asked !== undefined && (!running || running === asked));
  const stop = async () => {
    setBusy(true);
    onPressed();
    try {
      setAsked((await stopTurn(session)).turn ?? undefined);
    } catch (error) {
      sayFailed(t("inputNotStopped"), error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Tooltip text={stops ? t("inputStopHintOf", { what: stops }) : t("inputStopHint")}>
      <Button icon={Square} className="max-md:px-2" busy={stopping} onClick={() => void stop()}>
        {stopping ? t("inputStopping") : t("inputStop")}
      </Button>
    </Tooltip>
  );
}
