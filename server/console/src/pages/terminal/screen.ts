import "@xterm/xterm/css/xterm.css";
import { FitAddon } from "@xterm/addon-fit";
import { type ITheme, Terminal } from "@xterm/xterm";
import { allowStyleAttributes, withStyles } from "./styles";

/** Lines that can be scrolled back to. */
const SCROLLBACK = 10_000;

// Colours that a program chooses freely are attributes of each letter.
allowStyleAttributes();

/** A terminal on the page. */
export interface TerminalScreen {
  terminal: Terminal;
  /** Fits it to its box; its `onResize` tells of a change. */
  fit(): void;
  dispose(): void;
}

/** Makes a terminal in this box. */
export function openScreen(box: HTMLElement, fontSize: number): TerminalScreen {
  const terminal = new Terminal({
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--font-mono") || "monospace",
    fontSize,
    lineHeight: 1.2,
    scrollback: SCROLLBACK,
    cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
    // A program must not draw invisible text.
    minimumContrastRatio: 4.5,
    // A program must not read or write the clipboard, or open windows.
    windowOptions: {},
    allowProposedApi: false,
    macOptionIsMeta: true,
    theme: themeOf(box),
  });
  const fitting = new FitAddon();
  terminal.loadAddon(fitting);
  withStyles(document, () => terminal.open(box));
  return {
    terminal,
    fit: () => {
      if (box.clientWidth > 0 && box.clientHeight > 0) fitting.fit();
    },
    dispose: () => terminal.dispose(),
  };
}

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

/** The colours of output, from the tokens. */
function themeOf(box: HTMLElement): ITheme {
  const style = getComputedStyle(box);
  const token = (name: string) => style.getPropertyValue(name).trim();
  const theme: ITheme = {
    background: token("--term"),
    foreground: token("--term-ink"),
    cursor: token("--term-ink"),
    cursorAccent: token("--term"),
    selectionBackground: token("--term-line"),
  };
  NAMES.forEach((name, number) => {
    theme[name] = token(`--term-${number}`);
    theme[`bright${name[0]?.toUpperCase()}${name.slice(1)}` as "brightRed"] = token(`--term-${number + 8}`);
  });
  return theme;
}
