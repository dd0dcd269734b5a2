import type { Translation } from "../translation";
import type { signIn as english } from "../en/signIn";

export const signIn: Translation<typeof english> = {
  againTitle: "请重新登录",
  againWhy: "此浏览器的登录已失效。你输入的内容还在。",
  askAdmin: "请向你的 Gantry 管理员索取邀请。",
  askOperator: "如果服务器由你自己运行，请在服务器上生成登录码：",
  code: "一次性登录码",
  codeHint: "仅供你本人使用，只能用一次。",
  hint: "让智能体在你自己的机器上动手。",
  noCode: "没有登录码？",
  signIn: "登录",
  title: "登录 Gantry",
  welcome: "欢迎使用 Gantry",
  welcomeHint: "链接中已包含登录码。登录后，此浏览器将保持登录状态。",
  wrongCode: "登录码错误、已被使用或已过期。请索取新的登录码。",
};
