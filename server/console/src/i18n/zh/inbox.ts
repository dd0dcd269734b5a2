import type { Translation } from "../translation";
import type { inbox as english } from "../en/inbox";

export const inbox: Translation<typeof english> = {
  allowed: "{{name}} 已允许",
  answered: "已处理",
  answeredFailed: "无法读取已处理的问题。",
  asked: "提出于",
  denied: "{{name}} 已拒绝",
  failed: "无法读取这些问题。",
  nothing: "没有等待你处理的事项",
  nothingHint: "智能体在动手前需要询问时，所有对话中的问题都会出现在这里。",
  nothingViewer: "这里只显示你自己的智能体的问题。查看者的智能体不工作，因此不会有问题。管理员可以给你成员角色。",
  notification: "“{{title}}” 在等待你",
  question: "一个问题",
  said: "{{name}} 已答复",
  title: "收件箱",
  unanswered: "未获答复即结束",
  waiting_other: "{{count}} 项等待你处理",
};
