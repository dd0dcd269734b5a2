import { Outlet, useParams, useSearch } from "@tanstack/react-router";
import { Divider, useListWidth } from "./list/Divider";
import { SessionList } from "./list/SessionList";
import { useIsNarrow } from "./useIsNarrow";

/** The chats beside the one that is open. On a phone, one of both: the address decides. */
export function ChatPage() {
  const narrow = useIsNarrow();
  const [width, setWidth] = useListWidth();
  const session = useParams({ strict: false }).session;
  const isNew = useSearch({ from: "/frame/chat" }).new === true;
  const onlyList = narrow && session === undefined && !isNew;
  return (
    <>
      {onlyList && (
        <main className="flex min-h-0 min-w-0 flex-1 flex-col bg-surface">
          <SessionList />
        </main>
      )}
      {!narrow && (
        <>
          <aside className="flex min-h-0 shrink-0 flex-col bg-surface" style={{ width }}>
            <SessionList />
          </aside>
          <Divider width={width} onChange={setWidth} />
        </>
      )}
      {!onlyList && (
        <div className="flex min-h-0 min-w-0 flex-1 flex-col">
          <Outlet />
        </div>
      )}
    </>
  );
}
