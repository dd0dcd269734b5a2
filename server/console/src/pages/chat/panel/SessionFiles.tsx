import { useState } from "react";
import { Browser } from "@/pages/files/Browser";
import type { Facts } from "@/transcript/facts";

/** The files of the conversation's machine, from its folder on. */
export default function SessionFiles({ facts }: { facts: Facts }) {
  const [path, setPath] = useState(facts.directory);
  const runner = facts.place?.runnerName;
  return <Browser key={runner} runner={runner} path={path} onGo={setPath} />;
}
