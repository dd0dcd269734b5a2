/**
 * Messages on their way to the server.
 *
 * A message stands here from the moment when the person sends it until the server has it. This browser keeps it over a
 * reload. While the server does not answer, the message is sent again with the same `client_id`, so that it is one
 * message however often it is sent. Messages of a session go one after the other. A refused one waits for the person.
 */
import { useEffect, useSyncExternalStore } from "react";
import { idempotencyKey } from "@/api/client";
import { addImage } from "@/api/images";
import { sendMessage } from "@/api/messages";
import { ProblemError } from "@/api/problem";
import type { MessageAccepted } from "@/api/schema";
import { sessionsChanged } from "@/api/sessions";
import { keep, kept } from "@/state/storage";
import { nameOf } from "./draft";

/** An image of a message: its digest, once the session has it, or its bytes. */
export type OutgoingImage = { digest: string } | { bytes: File };

/** A message that the server does not have yet. */
export interface Outgoing {
  /** Its `client_id`. */
  id: string;
  text: string;
  images: readonly OutgoingImage[];
  /** For a turn that works: into it, or after it. */
  how: "steer" | "queue";
  /** `away` while the server does not answer; `refused` until the person decides. */
  state: "sending" | "away" | "refused";
  error?: unknown;
}

type Sent = (session: string, sent: MessageAccepted) => void;

interface Box {
  name: string;
  waiting: readonly Outgoing[];
  busy: boolean;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
/** Answers after which the same request may succeed: signed out for now, too many requests, a server that starts. */
const PASSING: readonly number[] = [0, 401, 408, 429, 502, 503, 504];

const boxes = new Map<string, Box>();
const listeners = new Set<() => void>();
const sentListeners = new Set<Sent>();
const NOTHING: readonly Outgoing[] = [];

/** The messages of a session that the server does not have yet. What an earlier page left is sent now. */
export function useOutbox(user: string, session: string | undefined): readonly Outgoing[] {
  useEffect(() => {
    if (session) resume(user, session);
  }, [user, session]);
  return useSyncExternalStore(subscribe, () => (session ? boxOf(user, session).waiting : NOTHING));
}

/** Calls `listener` for each message that the server took. Returns how to stop. */
export function onMessageSent(listener: Sent): () => void {
  sentListeners.add(listener);
  return () => sentListeners.delete(listener);
}

/** Sends a message. */
export function post(user: string, session: string, message: Pick<Outgoing, "text" | "images" | "how">): void {
  const box = boxOf(user, session);
  change(box, [...box.waiting, { ...message, id: idempotencyKey(), state: "sending" }]);
  void work(session, box);
}

/** Sends what an earlier page left. */
export function resume(user: string, session: string): void {
  void work(session, boxOf(user, session));
}

/** True if the message is in a request that the server has not answered yet: it goes first, those behind it wait. */
export function isOnItsWay(message: Outgoing, place: number): boolean {
  return place === 0 && message.state === "sending";
}

/**
 * Takes a message back. One to which the server did not answer it may have all the same. Returns false for one that is
 * on its way: that stays.
 */
export function takeBack(user: string, session: string, id: string): boolean {
  const box = boxOf(user, session);
  const place = box.waiting.findIndex((message) => message.id === id);
  const message = box.waiting[place];
  if (!message || isOnItsWay(message, place)) return false;
  change(
    box,
    box.waiting.filter((message) => message.id !== id),
  );
  void work(session, box);
  return true;
}

/** Sends a refused message again. */
export function sendAgain(user: string, session: string, id: string): void {
  const box = boxOf(user, session);
  update(box, id, { state: "sending", error: undefined });
  void work(session, box);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function boxOf(user: string, session: string): Box {
  const name = nameOf("outbox", user, session);
  let box = boxes.get(name);
  if (!box) {
    box = { name, waiting: read(kept(name)), busy: false };
    boxes.set(name, box);
  }
  return box;
}

/** What an earlier page kept. Bytes of images are not kept. */
function read(text: string | undefined): Outgoing[] {
  try {
    const stored: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(stored) ? stored.filter(isMessage).map((message) => ({ ...message, state: "sending" })) : [];
  } catch {
    return [];
  }
}

function isMessage(value: unknown): value is Pick<Outgoing, "id" | "text" | "images" | "how"> {
  if (typeof value !== "object" || value === null) return false;
  const { id, text, images, how } = value as Record<string, unknown>;
  return typeof id === "string" && typeof text === "string" && Array.isArray(images) && (how === "steer" || how === "queue");
}

function change(box: Box, waiting: readonly Outgoing[]): void {
  box.waiting = waiting;
  const stored = waiting.map(({ id, text, images, how }) => ({ id, text, how, images: images.filter((image) => "digest" in image) }));
  keep(box.name, stored.length === 0 ? undefined : JSON.stringify(stored));
  for (const listener of listeners) listener();
}

function update(box: Box, id: string, changed: Partial<Outgoing>): void {
  change(
    box,
    box.waiting.map((message) => (message.id === id ? { ...message, ...changed } : message)),
  );
}

async function work(session: string, box: Box): Promise<void> {
  if (box.busy) return;
  box.busy = true;
  let pause = FIRST_PAUSE_MS;
  for (let message = box.waiting[0]; message && message.state !== "refused"; message = box.waiting[0]) {
    try {
      const sent = await deliver(session, box, message);
      change(
        box,
        box.waiting.filter((one) => one.id !== message.id),
      );
      pause = FIRST_PAUSE_MS;
      for (const listener of sentListeners) listener(session, sent);
      // The first message gives the session its title.
      void sessionsChanged();
    } catch (error) {
      const passes = error instanceof ProblemError && PASSING.includes(error.status);
      update(box, message.id, { state: passes ? "away" : "refused", error });
      if (passes) await rest(pause);
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }
  box.busy = false;
}

async function deliver(session: string, box: Box, message: Outgoing): Promise<MessageAccepted> {
  const images: string[] = [];
  for (const image of message.images) images.push("digest" in image ? image.digest : (await addImage(session, image.bytes)).digest);
  if (message.images.length > 0) update(box, message.id, { images: images.map((digest) => ({ digest })) });
  return sendMessage(session, { text: message.text, client_id: message.id, while_working: message.how, ...(images.length > 0 ? { images } : {}) });
}

/** Waits, but not longer than until the device is online again. */
function rest(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    addEventListener("online", done);
  });
}
