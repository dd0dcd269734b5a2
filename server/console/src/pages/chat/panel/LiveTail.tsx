import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { storedBytesQuery } from "@/api/operations";
import { openOperation } from "@/live/operation";
import { type OutputLine, terminalLines } from "@/transcript/ansi";
import { ErrorNote } from "@/ui/ErrorNote";
import { TerminalText } from "@/ui/TerminalText";

/** The output that is shown, in bytes from its end. */
const TAIL = 32 * 1024;

/** The end of an operation's output, as it is written. */
export function LiveTail({ operation, label }: { operation: string; label: string }) {
  const { t } = useTranslation("files");
  const stored = useQuery(storedBytesQuery(operation));
  if (stored.isError) return <ErrorNote error={stored.error} className="mt-2" />;
  if (stored.data === undefined) return <div className="mt-2 h-24 rounded-control bg-term" />;
  return <Tail operation={operation} from={Math.max(0, stored.data - TAIL)} label={t("outputOf", { command: label })} />;
}

function Tail({ operation, from, label }: { operation: string; from: number; label: string }) {
  const [lines, setLines] = useState<readonly OutputLine[]>([]);
  const [live, setLive] = useState(true);
  const text = useRef("");
  useEffect(() => {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    let frame: number | undefined;
    const paint = () => {
      frame = undefined;
      setLines(terminalLines(text.current));
    };
    text.current = "";
    const following = openOperation({
      id: operation,
      from: { stdout: from, stderr: 0 },
      onOutput: (piece, done) => {
        text.current = (text.current + decoders[piece.stream].decode(piece.data, { stream: true })).slice(-TAIL);
        frame ??= requestAnimationFrame(paint);
        done();
      },
      onGap: () => undefined,
      onState: () => undefined,
      onEnd: () => setLive(false),
    });
    return () => {
      if (frame !== undefined) cancelAnimationFrame(frame);
      following.close();
    };
  }, [operation, from]);
  return <TerminalText lines={lines} live={live} label={label} className="mt-2 max-h-80 rounded-control" />;
}
