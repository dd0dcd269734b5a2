import type { Translation } from "../translation";
import type { chat as english } from "../en/chat";

export const chat: Translation<typeof english> = {
  inputLabel: "消息",
  inputNotSent: "消息未发送。",
  inputSend: "发送",
};
