/** Words of the inbox. */
export const inbox = {
  allowed: "Allowed by {{name}}",
  answered: "Answered",
  answeredFailed: "The answered questions could not be read.",
  asked: "Asked",
  denied: "Denied by {{name}}",
  failed: "The questions could not be read.",
  nothing: "Nothing waits for you",
  nothingHint: "When an agent asks before it does something, the question is here, from every chat.",
  nothingViewer: "You see the questions of your own agents. A viewer's agents do not work, so none are asked. An admin can give you the role member.",
  notification: "“{{title}}” waits for you",
  question: "A question",
  said: "Answered by {{name}}",
  title: "Inbox",
  unanswered: "Ended without an answer",
  waiting_one: "{{count}} waits for you",
  waiting_other: "{{count}} wait for you",
} as const;
