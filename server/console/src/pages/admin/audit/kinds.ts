import type { Language } from "@/i18n";

/** The kinds of actions that the server records, in words. */
export const KINDS: Readonly<Record<string, Readonly<Record<Language, string>>>> = {
  "access.refused": { en: "A request was refused", zh: "请求被拒绝" },
  "approval.answered": { en: "An agent's question was answered", zh: "答复了智能体的问题" },
  "authentication.refused": { en: "A runner's connection was refused", zh: "运行器的身份验证被拒绝" },
  "credential.created": { en: "A key or sign-in was made", zh: "创建了密钥或登录" },
  "credential.refused": { en: "A key or sign-in was refused", zh: "密钥或登录被拒绝" },
  "credential.revoked": { en: "A key or sign-in was ended", zh: "撤销了密钥或登录" },
  "enrolment.refused": { en: "A new runner was refused", zh: "新运行器的登记被拒绝" },
  "join_token.created": { en: "A join token was made", zh: "创建了加入令牌" },
  "join_token.ended": { en: "A join token was ended", zh: "加入令牌已失效" },
  "link.refused": { en: "A runner's link was refused", zh: "运行器的连接被拒绝" },
  "model_account.added": { en: "A model account was added", zh: "添加了模型账户" },
  "model_account.changed": { en: "A model account was changed", zh: "更改了模型账户" },
  "model_account.removed": { en: "A model account was removed", zh: "移除了模型账户" },
  "operation.ended": { en: "Work on a runner ended", zh: "运行器上的操作结束" },
  "permission.added": { en: "A rule was added", zh: "添加了规则" },
  "permission.file_trusted": { en: "A project's rules were trusted", zh: "信任了项目的规则文件" },
  "permission.file_untrusted": { en: "A project's rules were trusted no more", zh: "不再信任项目的规则文件" },
  "permission.removed": { en: "A rule was removed", zh: "移除了规则" },
  "person.invited": { en: "A person was invited", zh: "邀请了成员" },
  "person.removed": { en: "A person was removed", zh: "移除了成员" },
  "person.role_changed": { en: "A role was changed", zh: "更改了角色" },
  "runner.distrusted": { en: "A runner's isolation was trusted no more", zh: "不再认可运行器的隔离" },
  "runner.drained": { en: "A runner was drained", zh: "排空了运行器" },
  "runner.enrolled": { en: "A runner was added", zh: "登记了运行器" },
  "runner.left": { en: "A runner for one use left", zh: "临时运行器离开" },
  "runner.locked": { en: "A copied runner was locked", zh: "锁定了被复制的运行器" },
  "runner.renamed": { en: "A runner was renamed", zh: "重命名了运行器" },
  "runner.revoked": { en: "A runner was removed", zh: "移除了运行器" },
  "runner.shared": { en: "A runner was shared", zh: "共享了运行器" },
  "runner.stayed_away": { en: "A runner for one use stayed away", zh: "临时运行器未再连接" },
  "runner.taken": { en: "A runner was taken over", zh: "接管了运行器" },
  "runner.trusted": { en: "A runner's isolation was trusted", zh: "认可了运行器的隔离" },
  "runner.undrained": { en: "A runner takes work again", zh: "运行器恢复接收任务" },
  "runner.unshared": { en: "A runner was shared no more", zh: "取消共享运行器" },
  "sandbox.changed": { en: "A sandbox was changed", zh: "更改了沙箱" },
  "sandbox.removed": { en: "A sandbox was removed", zh: "移除了沙箱" },
  "sandbox.started": { en: "A sandbox was started", zh: "启动了沙箱" },
  "sandbox.stopped": { en: "A sandbox was stopped", zh: "停止了沙箱" },
  "server.went_back": { en: "A runner saw the server in an older state", zh: "运行器发现服务器回到了旧状态" },
  "service_account.added": { en: "A service account was added", zh: "添加了服务账号" },
  "session.deleted": { en: "A chat was deleted", zh: "删除了对话" },
  "session.shared": { en: "A chat was shared by a link", zh: "用链接分享了对话" },
  "session.unshared": { en: "A chat's links were ended", zh: "结束了对话的链接" },
  "settings.changed": { en: "A setting was changed", zh: "更改了设置" },
  "sign_in.refused": { en: "A sign-in was refused", zh: "登录被拒绝" },
  "sign_in_code.issued": { en: "A sign-in code was made", zh: "生成了登录码" },
  "tenant.created": { en: "The tenant was made", zh: "创建了租户" },
  "tool_server.signed_in": { en: "Someone signed in to a tool server", zh: "登录了工具服务器" },
  "tool_server.signed_out": { en: "Someone signed out of a tool server", zh: "退出了工具服务器" },
  "tool_value.removed": { en: "A value for tool servers was removed", zh: "移除了工具服务器的值" },
  "tool_value.set": { en: "A value for tool servers was set", zh: "设置了工具服务器的值" },
};

/** The beginnings with which a filter chooses several kinds, such as `runner.`. */
export const GROUPS: readonly string[] = [...new Set(Object.keys(KINDS).map(groupOf))].filter((group) => Object.keys(KINDS).filter((kind) => groupOf(kind) === group).length > 1);

function groupOf(kind: string): string {
  return kind.slice(0, kind.indexOf(".") + 1);
}

/** A kind in words; a newer server's has none. */
export function kindInWords(kind: string, language: string): string | undefined {
  return Object.hasOwn(KINDS, kind) ? KINDS[kind]?.[language as Language] : undefined;
}
