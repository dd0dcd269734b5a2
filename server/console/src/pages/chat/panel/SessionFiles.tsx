import { useState } from "react";
import { Browser } from "@/pages/files/Browser";
import { usePlace } from "../composer/place";
import type { Facts } from "@/transcript/facts";

/** The files of the conversation's machine, from its folder on. */
export default function SessionFiles({ session, facts }: { session: string; facts: Facts }) {
  const [path, setPath] = useState(facts.directory);
  const runner = usePlace(session)?.value;
  return <Browser key={runner} runner={runner} path={path} onGo={setPath} />;
}
