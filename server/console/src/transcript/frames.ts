/** Batches of changes: however many pieces come, a page is painted at most once per frame. */

/** The longest wait where no frame comes: the page is hidden, or the browser is busy. In milliseconds. */
const HIDDEN_MS = 50;

/** Calls a function once, at the next frame. */
export class Frames {
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isAsked = false;

  constructor(private readonly call: () => void) {}

  /** Asks for a call; another one before it comes changes nothing. */
  ask(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    this.#frame = document.visibilityState === "visible" ? requestAnimationFrame(this.#run) : 0;
    this.#timer = setTimeout(this.#run, HIDDEN_MS);
  }

  /** Forgets what was asked for. */
  stop(): void {
    this.#isAsked = false;
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
  }

  readonly #run = (): void => {
    this.stop();
    this.call();
  };
}
