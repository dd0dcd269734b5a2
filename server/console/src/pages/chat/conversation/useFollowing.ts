import { type RefObject, useCallback, useEffect, useRef, useState } from "react";

/** The time for which a turn of the wheel moves the box, in milliseconds: nothing else may move it meanwhile. */
const WHEEL_MS = 150;

/** Whether the reader follows the end of a box that scrolls. */
export interface Following {
  readonly follows: boolean;
  /** Follows from now on. */
  readonly follow: () => void;
}

/**
 * Keeps the end of a box in sight, whatever grows or shrinks, as long as the reader stands there.
 *
 * The smallest move up by the reader ends that, so that a fast stream holds nobody; coming to within `near` pixels of
 * the end begins it again. `held` leaves the box where it is for a moment.
 */
export function useFollowing(box: RefObject<HTMLElement | null>, content: RefObject<HTMLElement | null>, held: boolean, near: number): Following {
  const [follows, setFollows] = useState(true);
  const now = useRef(true);
  const isHeld = useRef(held);
  useEffect(() => {
    isHeld.current = held;
  }, [held]);
  const set = useCallback((value: boolean) => {
    now.current = value;
    setFollows(value);
  }, []);
  useEffect(() => {
    const at = box.current;
    if (!at) return;
    let [last, touching, wheeledAt] = [at.scrollTop, false, 0];
    const byHand = () => touching || performance.now() - wheeledAt < WHEEL_MS;
    const distance = () => at.scrollHeight - at.scrollTop - at.clientHeight;
    const scrolled = () => {
      const up = at.scrollTop < last - 1;
      last = at.scrollTop;
      if (distance() <= near && !(up && byHand())) set(true);
      // A row above that turned out to be smaller moves the box up as well, but not away from its end.
      else if (up) set(false);
      else if (isHeld.current) set(false);
    };
    const wheel = (event: WheelEvent) => {
      if (event.deltaY < 0) wheeledAt = performance.now();
    };
    const touch = (event: TouchEvent) => {
      touching = event.touches.length > 0;
    };
    const resized = new ResizeObserver(() => {
      if (now.current && !isHeld.current && !byHand()) at.scrollTop = at.scrollHeight;
      else if (now.current && isHeld.current && distance() > near) set(false);
    });
    at.addEventListener("scroll", scrolled, { passive: true });
    at.addEventListener("wheel", wheel, { passive: true });
    for (const name of ["touchstart", "touchend", "touchcancel"] as const) at.addEventListener(name, touch, { passive: true });
    resized.observe(at);
    if (content.current) resized.observe(content.current);
    return () => {
      at.removeEventListener("scroll", scrolled);
      at.removeEventListener("wheel", wheel);
      for (const name of ["touchstart", "touchend", "touchcancel"] as const) at.removeEventListener(name, touch);
      resized.disconnect();
    };
  }, [box, content, near, set]);
  return { follows, follow: useCallback(() => set(true), [set]) };
}
