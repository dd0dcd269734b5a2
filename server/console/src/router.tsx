import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { meQuery } from "./api/me";
import { ProblemError } from "./api/problem";
import { queries } from "./api/query";
import { Frame } from "./frame/Frame";
import { NotFound, PageFailed } from "./frame/Lost";
import { rangeOf } from "./pages/usage/days";
import { noteWho } from "./state/person";
import { Skeleton } from "./ui/Skeleton";

const root = createRootRoute({ notFoundComponent: NotFound });

/** True for an address of this server, as the browser understands it: a link could name another one. */
function isOwnAddress(address: string): boolean {
  return address.startsWith("/") && URL.canParse(address, location.origin) && new URL(address, location.origin).origin === location.origin;
}

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: (search: Record<string, unknown>): { next?: string | undefined } => {
    const next = search["next"];
    return { next: typeof next === "string" && isOwnAddress(next) ? next : undefined };
  },
  component: lazyRouteComponent(() => import("./pages/sign-in/SignIn"), "SignIn"),
});

/** Every page of a person who is signed in. */
const frame = createRoute({
  getParentRoute: () => root,
  id: "frame",
  component: Frame,
  beforeLoad: async ({ location }) => {
    try {
      noteWho((await queries.ensureQueryData(meQuery)).user.id);
    } catch (error) {
      if (error instanceof ProblemError && error.status === 401) {
        throw redirect({ to: "/sign-in", search: location.href === "/" ? {} : { next: location.href } });
      }
      throw error;
    }
  },
});

const home = createRoute({
  getParentRoute: () => frame,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/chat" });
  },
});

// A page gets each parameter of its address that the checks below leave out, as it is. So a wrong one becomes undefined.

/** A search parameter that is a text, as a spread: undefined where it is none. */
function text(search: Record<string, unknown>, name: string): Record<string, string | undefined> {
  const value = search[name];
  return { [name]: typeof value === "string" && value !== "" ? value : undefined };
}

/** True for a day such as `2026-11-28`. */
function isDay(value: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(value) && !Number.isNaN(Date.parse(value));
}

/** A search parameter that is on, as a spread: undefined where it is off. */
function flag(search: Record<string, unknown>, name: string): Record<string, boolean | undefined> {
  return { [name]: search[name] === true ? true : undefined };
}

const chat = createRoute({
  getParentRoute: () => frame,
  path: "/chat",
  validateSearch: (search: Record<string, unknown>): { search?: string | undefined; archived?: boolean | undefined; new?: boolean | undefined } => ({
    ...text(search, "search"),
    ...flag(search, "archived"),
    // On a phone: the new chat in place of the list.
    ...flag(search, "new"),
  }),
  component: lazyRouteComponent(() => import("./pages/chat/ChatPage"), "ChatPage"),
});

const newChat = createRoute({
  getParentRoute: () => chat,
  path: "/",
  component: lazyRouteComponent(() => import("./pages/chat/NewChat"), "NewChat"),
});

const conversation = createRoute({
  getParentRoute: () => chat,
  path: "$session",
  component: lazyRouteComponent(() => import("./pages/chat/Conversation"), "Conversation"),
});

const inbox = createRoute({
  getParentRoute: () => frame,
  path: "/inbox",
  component: lazyRouteComponent(() => import("./pages/inbox/Inbox"), "Inbox"),
});

const runners = createRoute({
  getParentRoute: () => frame,
  path: "/runners",
  validateSearch: (search: Record<string, unknown>): { search?: string | undefined; sort?: "state" | undefined; runner?: string | undefined; enrol?: 1 | undefined } => ({
    ...text(search, "search"),
    ...text(search, "runner"),
    sort: search["sort"] === "state" ? "state" : undefined,
    // `?enrol=1` opens the dialog that adds a machine.
    enrol: search["enrol"] === 1 ? 1 : undefined,
  }),
  component: lazyRouteComponent(() => import("./pages/runners/Runners"), "Runners"),
});

const sandboxes = createRoute({
  getParentRoute: () => frame,
  path: "/sandboxes",
  validateSearch: (search: Record<string, unknown>): { search?: string | undefined; sandbox?: string | undefined } => ({ ...text(search, "search"), ...text(search, "sandbox") }),
  component: lazyRouteComponent(() => import("./pages/sandboxes/Sandboxes"), "Sandboxes"),
});

const terminals = createRoute({
  getParentRoute: () => frame,
  path: "/terminal",
  validateSearch: (search: Record<string, unknown>): { runner?: string | undefined; operation?: string | undefined } => ({ ...text(search, "runner"), ...text(search, "operation") }),
  component: lazyRouteComponent(() => import("./pages/terminal/TerminalPage"), "TerminalPage"),
});

const files = createRoute({
  getParentRoute: () => frame,
  path: "/files",
  validateSearch: (search: Record<string, unknown>): { runner?: string | undefined; path?: string | undefined } => ({ ...text(search, "runner"), ...text(search, "path") }),
  component: lazyRouteComponent(() => import("./pages/files/FilesPage"), "FilesPage"),
});

const settings = createRoute({
  getParentRoute: () => frame,
  path: "/settings",
  component: lazyRouteComponent(() => import("./pages/settings/SettingsPage"), "SettingsPage"),
});

const admin = createRoute({
  getParentRoute: () => frame,
  path: "/admin",
  component: lazyRouteComponent(() => import("./pages/admin/Admin"), "Admin"),
});

const adminHome = createRoute({
  getParentRoute: () => admin,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/admin/people" });
  },
});

const people = createRoute({
  getParentRoute: () => admin,
  path: "people",
  component: lazyRouteComponent(() => import("./pages/admin/People"), "People"),
});

const tenant = createRoute({
  getParentRoute: () => admin,
  path: "everyone",
  component: lazyRouteComponent(() => import("./pages/admin/Everyone"), "Everyone"),
});

const audit = createRoute({
  getParentRoute: () => admin,
  path: "audit",
  validateSearch: (search: Record<string, unknown>): { who?: string | undefined; what?: string | undefined; since?: string | undefined } => ({
    ...text(search, "who"),
    ...text(search, "what"),
    since: typeof search["since"] === "string" && isDay(search["since"]) ? search["since"] : undefined,
  }),
  component: lazyRouteComponent(() => import("./pages/admin/Audit"), "Audit"),
});

const usage = createRoute({
  getParentRoute: () => frame,
  path: "/usage",
  validateSearch: (search: Record<string, unknown>): { days?: number | undefined; all?: boolean | undefined } => ({ days: rangeOf(search["days"]), ...flag(search, "all") }),
  component: lazyRouteComponent(() => import("./pages/usage/UsagePage"), "UsagePage"),
});

const status = createRoute({
  getParentRoute: () => frame,
  path: "/status",
  component: lazyRouteComponent(() => import("./pages/status/StatusPage"), "StatusPage"),
});

/** The console's pages and their addresses. */
export const router = createRouter({
  routeTree: root.addChildren([
    signIn,
    frame.addChildren([
      home,
      chat.addChildren([newChat, conversation]),
      inbox,
      runners,
      sandboxes,
      terminals,
      files,
      settings,
      admin.addChildren([adminHome, people, tenant, audit]),
      usage,
      status,
    ]),
  ]),
  defaultPreload: "intent",
  defaultErrorComponent: PageFailed,
  defaultPendingComponent: () => <Skeleton rows={4} />,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
