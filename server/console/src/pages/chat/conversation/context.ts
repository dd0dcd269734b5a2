import { createContext, useContext, useState } from "react";

/** The things that all parts of one conversation know. */
export interface Conversation {
  readonly session: string;
  /** The names of people, by their ids. */
  readonly people: Readonly<Record<string, string>>;
  /** The person who reads. */
  readonly me: string | undefined;
  /** True while all that the server has is shown; false while the connection is made again. */
  readonly live: boolean;
  /** True while a turn works or waits: then nothing can go back. */
  readonly works: boolean;
  /** The turn that works; undefined if none does. */
  readonly turn: string | undefined;
  /** Called before something opens or closes by the reader's hand, so that the page keeps its place. */
  readonly onFold: () => void;
  /** Called to show the extensions of the session. */
  readonly onExtensions: () => void;
  /** Called to edit a person's message. */
  readonly onEdit: (turn: string, text: string) => void;
}

/** See {@link Conversation}. */
export const ConversationContext = createContext<Conversation>({
  session: "",
  people: {},
  me: undefined,
  live: true,
  works: false,
  turn: undefined,
  onFold: () => {},
  onExtensions: () => {},
  onEdit: () => {},
});

/** The conversation around. */
export function useConversation(): Conversation {
  return useContext(ConversationContext);
}

/** What the reader opened and closed; rows that leave the page are forgotten by React, but not here. */
const folds = new Map<string, boolean>();
const MOST_FOLDS = 2000;

/** Whether a part is open: as the reader left it, or else `byItself`. */
export function useFold(id: string, byItself: boolean): [boolean, () => void] {
  const { onFold } = useConversation();
  const [chosen, setChosen] = useState(folds.get(id));
  const open = chosen ?? byItself;
  const toggle = () => {
    onFold();
    folds.set(id, !open);
    if (folds.size > MOST_FOLDS) folds.delete(folds.keys().next().value ?? "");
    setChosen(!open);
  };
  return [open, toggle];
}
