/** Words of the list of chats, the input and a new chat. */
export const chat = {
  inputLabel: "Message",
  inputNotSent: "The message was not sent.",
  inputSend: "Send",
} as const;
