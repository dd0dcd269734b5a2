import { memo } from "react";
import { useTranslation } from "react-i18next";
import type { Item } from "@/transcript/model";
import { History } from "lucide-react";
import { Answer } from "./Answer";
import { ApprovalCard } from "./approval/ApprovalCard";
import { CallCard } from "./call/CallCard";
import { Looks } from "./call/Looks";
import { Disclosure } from "./Disclosure";
import { Message } from "./Message";
import { Notes } from "./Notes";
import type { Row } from "./rows";
import { TodoChange } from "./TodoChange";
import { useFold } from "./context";

/** The items that are painted of those that were gone back from; there may be very many. */
const MOST_REWOUND = 200;

/** One row of a conversation. */
export const RowView = memo(function RowView({ row }: { row: Row }) {
  if (row.kind === "looks") return <Looks id={row.key} calls={row.calls} />;
  if (row.kind === "rewound") return <Rewound id={row.key} items={row.items} />;
  return <ItemView item={row.item} />;
});

function ItemView({ item }: { item: Item }) {
  switch (item.kind) {
    case "message":
      return <Message item={item} />;
    case "answer":
      return <Answer item={item} />;
    case "call": {
      const { approval } = item;
      if (item.state !== "approval" || !approval || approval.answered) return <CallCard item={item} />;
      return <ApprovalCard approval={{ id: approval.id, question: approval.question, until: new Date(approval.until).toISOString() }} request={item.request} />;
    }
    case "todo":
      return <TodoChange item={item} />;
    case "note":
      return <Notes item={item} />;
  }
}

/** What is no part of the conversation any more, folded. */
function Rewound({ id, items }: { id: string; items: readonly Item[] }) {
  const { t } = useTranslation("transcript");
  const [open, toggle] = useFold(id, false);
  const messages = items.filter((item) => item.kind === "message").length;
  return (
    <Disclosure icon={History} open={open} onToggle={toggle} head={<span className="text-muted">{t("rewoundItems", { count: messages })}</span>}>
      <div className="flex flex-col gap-3 border-l-2 border-dashed border-line-strong pl-4">
        {items.slice(-MOST_REWOUND).map((item) => (
          <ItemView key={item.id} item={item} />
        ))}
      </div>
    </Disclosure>
  );
}
