import type { PhraseBook } from "../../told";
import { commands } from "./commands";
import { problems, refusals } from "./refusals";
import { risk } from "./risk";
import { work } from "./work";

/** What the server says, in Chinese. */
export const told: PhraseBook = { sentences: { ...work, ...refusals, ...commands, ...risk }, problems };
