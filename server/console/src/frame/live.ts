import { useEffect } from "react";
import { signedOut } from "@/api/client";
import { meQuery, useMe } from "@/api/me";
import { queries } from "@/api/query";
import type { Topic } from "@/api/schema";
import { socket } from "@/live/socket";
import { followOtherTabs, noteWho } from "@/state/person";

/** All lists of the console. */
const TOPICS: readonly Topic[] = [
  "sessions",
  "approvals",
  "runners",
  "join_tokens",
  "sandboxes",
  "operations",
  "settings",
  "models",
  "people",
  "keys",
  "permissions",
];

/** The topics whose change can change who the person works with. */
const OF_ME: readonly Topic[] = ["runners", "models", "people"];

/** Connects the tab, and makes each list stale of which the server hints that it may be different now. */
export function useLive(): void {
  const who = useMe()?.user.id;
  useEffect(() => {
    if (who) noteWho(who);
  }, [who]);
  useEffect(() => {
    const stops = [
      followOtherTabs(),
      socket.onSignedOut(signedOut),
      socket.onChanged(TOPICS, (changed) => {
        for (const topic of changed) void queries.invalidateQueries({ queryKey: [topic] });
        if (changed.some((topic) => OF_ME.includes(topic))) void queries.invalidateQueries(meQuery);
      }),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }, []);
}
