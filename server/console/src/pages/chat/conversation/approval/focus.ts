/** Where the focus goes from a question that has its answer: its card goes, and would take the focus with it. */
import { type RefObject, useLayoutEffect } from "react";

/** Finds the cards of questions that wait. */
export const WAITING_CARDS = 'section[id^="approval-"][tabindex="0"]';

/** The attribute of the element that has the focus after the last question. */
export const AFTER_QUESTIONS = "data-after-questions";

/** Hands the focus of a card on once its question waits no more: to the next question, or else to the page's own place. */
export function useHandsOn(card: RefObject<HTMLElement | null>, waits: boolean): void {
  useLayoutEffect(() => {
    if (!waits) handOn(card.current);
  }, [card, waits]);
  useLayoutEffect(() => {
    const element = card.current;
    return () => handOn(element);
  }, [card]);
}

function handOn(card: HTMLElement | null): void {
  if (!card?.contains(document.activeElement)) return;
  const others = [...document.querySelectorAll<HTMLElement>(WAITING_CARDS)].filter((one) => one !== card);
  const next = others.find((one) => card.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING) ?? others[0];
  (next ?? document.querySelector<HTMLElement>(`[${AFTER_QUESTIONS}]`))?.focus();
}
