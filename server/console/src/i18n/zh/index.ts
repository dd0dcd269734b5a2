import { common } from "./common";
import { frame } from "./frame";
import { signIn } from "./signIn";
import { chat } from "./chat";
import { transcript } from "./transcript";
import { runners } from "./runners";
import { sandboxes } from "./sandboxes";
import { inbox } from "./inbox";
import { settings } from "./settings";
import { admin } from "./admin";
import { usage } from "./usage";
import { status } from "./status";
import { terminal } from "./terminal";
import { files } from "./files";

/** All words in Chinese. */
export const chinese = { common, frame, signIn, chat, transcript, runners, sandboxes, inbox, settings, admin, usage, status, terminal, files };
export { told } from "./told";
