import { useEffect } from "react";

let page = "";
let waiting = 0;

function show(): void {
  const name = page ? `${page} · Gantry` : "Gantry";
  document.title = waiting > 0 ? `(${waiting}) ${name}` : name;
}

/** Names the tab after its page, as long as the page is there. */
export function useTitle(name: string): void {
  useEffect(() => {
    page = name;
    show();
    return () => {
      page = "";
      show();
    };
  }, [name]);
}

/** Counts in the tab's name what waits for the person. */
export function countInTitle(count: number): void {
  waiting = count;
  show();
}
