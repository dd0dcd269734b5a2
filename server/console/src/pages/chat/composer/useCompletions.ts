import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { commandsQuery } from "@/api/commands";
import { extensionsQuery, foundExtensionsQuery } from "@/api/extensions";
import type { ListedEntry } from "@/api/schema";
import { sessionToolServersQuery } from "@/api/tool-servers";
import { reasonOf } from "@/ui/failure";
import { type Completion, commandsLike, filesLike, promptCommands, resourcesLike, skillCommands, splitPath, type Word, wordAt } from "./complete";
import { folderEntries, forgetFolders } from "./folder";

/** The pause in typing after which the runner is asked for a folder, in milliseconds. */
const PAUSE_MS = 120;

/** Why there are no files to offer. */
export type NoFiles = "away" | "none" | { failed: string };

/** What the word before the cursor can become. */
export interface Completions {
  word: Word;
  items: readonly Completion[];
  /** The item that Enter and Tab take. */
  at: number;
  loading: boolean;
  /** Why there are no files; absent where there are some, or for commands. */
  none?: NoFiles | undefined;
}

interface Wanted {
  /** The session whose skills and tool servers are asked for; undefined before there is one. */
  session: string | undefined;
  text: string;
  cursor: number;
  /** True if a line that begins with a slash is a command here. */
  commands: boolean;
  /** The place of the files: a runner's name, alone or with `/WORKSPACE`; undefined for none. */
  place: string | undefined;
  online: boolean;
  /** The session's folder, relative to the workspace. */
  directory: string;
}

type Folder = { key: string } & ({ entries: readonly ListedEntry[] } | { failed: string });

/** The completions of the word before the cursor, how to move in them, and how to close them. */
export function useCompletions({ session, text, cursor, commands, place, online, directory }: Wanted): { list: Completions | undefined; step: (by: number) => void; point: (at: number) => void; dismiss: () => void } {
  const [dismissed, setDismissed] = useState<number>();
  const [at, setAt] = useState(0);
  const [folder, setFolder] = useState<Folder>();
  const word = useMemo(() => wordAt(text, cursor), [text, cursor]);
  const wordKey = word && `${word.kind}${word.start}${word.prefix}`;
  const offered = word?.kind !== "command" || commands ? word : undefined;
  const open = offered && offered.start !== dismissed ? offered : undefined;
  const wantsCommands = open?.kind === "command";
  const commandsKnown = useQuery({ ...commandsQuery, enabled: wantsCommands }).data?.commands;
  const registered = useQuery({ ...extensionsQuery, enabled: wantsCommands }).data?.extensions;
  const found = useQuery({ ...foundExtensionsQuery(session ?? ""), enabled: wantsCommands && session !== undefined }).data;
  const servers = useQuery({ ...sessionToolServersQuery(session ?? ""), enabled: open !== undefined && session !== undefined }).data?.servers;
  const known = useMemo(() => {
    const own = commandsKnown && [...commandsKnown, ...skillCommands(commandsKnown, registered ?? [], found?.skills ?? [])];
    return own && [...own, ...promptCommands(own, servers ?? [])];
  }, [commandsKnown, registered, found, servers]);
  const path = open?.kind === "file" ? [directory, splitPath(open.prefix).folder].filter((part) => part !== "").join("/") : undefined;
  const key = path !== undefined && place !== undefined && online ? `${place}:${path}` : undefined;

  useEffect(() => setAt(0), [wordKey]);
  useEffect(() => {
    // Another word opens the list again.
    if (word === undefined) setDismissed(undefined);
  }, [word]);
  useEffect(() => {
    if (key === undefined || path === undefined) return;
    let wanted = true;
    const timer = setTimeout(() => {
      folderEntries(place, path).then(
        (entries) => wanted && setFolder({ key, entries }),
        (error: unknown) => wanted && setFolder({ key, failed: reasonOf(error) }),
      );
    }, PAUSE_MS);
    return () => {
      wanted = false;
      clearTimeout(timer);
      forgetFolders();
    };
  }, [key, path, place]);

  const list = useMemo((): Completions | undefined => {
    if (!open) return undefined;
    if (open.kind === "command") {
      const items = commandsLike(known ?? [], open.prefix);
      return items.length > 0 ? { word: open, items, at: Math.min(at, items.length - 1), loading: false } : undefined;
    }
    const resources = resourcesLike(servers ?? [], open.prefix);
    const offer = (items: readonly Completion[], none?: NoFiles) => ({ word: open, items, at: Math.max(0, Math.min(at, items.length - 1)), loading: false, none });
    if (place === undefined) return resources.length > 0 ? offer(resources) : undefined;
    if (!online) return offer(resources, "away");
    // The resources wait for the files, which stand before them: the item that Enter takes stays the same.
    if (folder === undefined || folder.key !== key) return { ...offer([]), loading: true };
    if ("failed" in folder) return offer(resources, { failed: folder.failed });
    const items = [...filesLike(folder.entries, open.prefix), ...resources];
    return offer(items, items.length === 0 ? "none" : undefined);
  }, [open, known, at, place, online, folder, key, servers]);

  return {
    list,
    step: (by) => list && list.items.length > 0 && setAt((list.at + by + list.items.length) % list.items.length),
    point: setAt,
    dismiss: () => setDismissed(word?.start),
  };
}
