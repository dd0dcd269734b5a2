import { type Ref, useEffect, useImperativeHandle, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { ProblemError } from "@/api/problem";
import type { Operation } from "@/api/schema";
import { told, toldProblem } from "@/i18n/told";
import { type OpenOperation, type OperationEnded, type OperationView, openOperation } from "@/live/operation";
import { ErrorNote } from "@/ui/ErrorNote";
import { Ago } from "@/ui/Time";
import { openScreen } from "./screen";

/** What others may do with a terminal. */
export interface ShellHandle {
  /** Types this. */
  type(text: string): void;
  focus(): void;
}

interface ShellProps {
  operation: string;
  /** The bytes of its output that are stored already. */
  stored: number;
  fontSize: number;
  /** True if it takes the focus: the person opened it just now, or its page. */
  takesFocus: boolean;
  onEnd?: (operation: Operation) => void;
  ref?: Ref<ShellHandle>;
}

/** The time for which a window's new size must last before the program hears of it, in milliseconds. */
const STEADY_MS = 80;
/** The stored output that is read again, in bytes: enough for the screen and what can be scrolled back to. */
const READ_AGAIN = 1024 * 1024;
/** What a terminal answers by itself when a program asks it something. */
const REPORT = /^\x1b(\[[?>=]?[\d;]*[cRntuy$]|P|\]|_)/;
const encoder = new TextEncoder();

/**
 * The terminal of one operation.
 *
 * It reads the last of the stored output, and then what comes: so a page that is loaded again shows the same. Keys go out
 * at once and in order; what the server has not taken is kept and sent again.
 */
export function Shell({ operation, stored, fontSize, takesFocus, onEnd, ref }: ShellProps) {
  const { t } = useTranslation("terminal");
  const box = useRef<HTMLDivElement>(null);
  const open = useRef<{ operation: OpenOperation; focus: () => void }>(undefined);
  const told = useRef(onEnd);
  const [view, setView] = useState<OperationView>();
  const [end, setEnd] = useState<OperationEnded>();
  const [full, setFull] = useState(false);
  useEffect(() => {
    told.current = onEnd;
  });
  useImperativeHandle(ref, () => ({
    type: (text) => void open.current?.operation.write(encoder.encode(text)),
    focus: () => open.current?.focus(),
  }));
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    setEnd(undefined);
    const screen = openScreen(element, fontSize);
    const { terminal } = screen;
    let seen = Math.max(0, stored - READ_AGAIN);
    const following = openOperation({
      id: operation,
      from: { stdout: seen, stderr: 0 },
      onOutput: (piece, done) =>
        terminal.write(piece.data, () => {
          seen = piece.offset + piece.data.length;
          done();
        }),
      onGap: () => terminal.write(`\r\n\x1b[2m${t("gap")}\x1b[0m\r\n`),
      onState: setView,
      onEnd: (over) => {
        setEnd(over);
        if (over.why === "ended") told.current?.(over.operation);
      },
    });
    const type = (bytes: Uint8Array) => setFull(!following.write(bytes));
    terminal.onData((text) => {
      // The program was answered when it asked, and must not be answered again for what it wrote then.
      if (seen >= stored || !REPORT.test(text)) type(encoder.encode(text));
    });
    // Reports of the mouse that are not UTF-8: each letter is a byte.
    terminal.onBinary((text) => type(Uint8Array.from(text, (letter) => letter.charCodeAt(0))));
    let steady: ReturnType<typeof setTimeout> | undefined;
    terminal.onResize(({ rows, cols }) => {
      clearTimeout(steady);
      steady = setTimeout(() => following.resize(rows, cols), STEADY_MS);
    });
    terminal.attachCustomKeyEventHandler(leavesCopyToBrowser);
    screen.fit();
    // The program draws anew for this window, which may have another size than the one that was reloaded.
    following.resize(terminal.rows, terminal.cols, true);
    const resized = new ResizeObserver(() => screen.fit());
    resized.observe(element);
    if (takesFocus) terminal.focus();
    open.current = { operation: following, focus: () => terminal.focus() };
    return () => {
      clearTimeout(steady);
      resized.disconnect();
      following.close();
      screen.dispose();
      open.current = undefined;
    };
    // `stored` and `takesFocus` are of the moment at which the operation was opened.
  }, [operation, fontSize, t]);
  return (
    <div className="flex min-h-0 flex-1 flex-col bg-term">
      <div ref={box} className="min-h-0 flex-1 px-2 pt-2" />
      <State view={view} end={end} full={full} />
    </div>
  );
}

/** One line on what keeps the terminal from being as it should. */
function State({ view, end, full }: { view: OperationView | undefined; end: OperationEnded | undefined; full: boolean }) {
  const { t } = useTranslation("terminal");
  if (end?.why === "refused") return <ErrorNote error={new ProblemError(end.problem)} className="m-2" />;
  const words = end
    ? end.why === "ended"
      ? t("ended", { how: told(end.operation.end?.words ?? "") })
      : t("signedOut")
    : view?.link.state === "lost"
      ? t("lost")
      : view?.unreachableSince
        ? t("away")
        : full || view?.inputLost
          ? t("inputLost")
          : view?.problem && toldProblem(view.problem.code, view.problem.detail);
  return (
    <p role="status" className="min-h-6 shrink-0 px-3 py-1 text-meta text-term-faint">
      {words}
      {!end && view?.unreachableSince && (
        <>
          {" "}
          <Ago at={view.unreachableSince} />
        </>
      )}
    </p>
  );
}

/** Ctrl-Shift-C copies, as in other terminals, and Ctrl-Shift-V is left to the browser's paste. */
function leavesCopyToBrowser(event: KeyboardEvent): boolean {
  if (event.type !== "keydown" || !event.ctrlKey || !event.shiftKey) return true;
  if (event.code === "KeyC") {
    event.preventDefault();
    document.execCommand("copy");
    return false;
  }
  return event.code !== "KeyV";
}
