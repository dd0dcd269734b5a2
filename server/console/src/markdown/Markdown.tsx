import type { MarkedToken, Token, Tokens } from "marked";
import { Fragment, memo, type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { cx } from "@/ui/class";
import { Code } from "@/ui/Code";
import { type Block, BlockReader } from "./blocks";
import { Address, Inline } from "./Inline";

/**
 * Markdown of a model or a person, as React's nodes: never as HTML.
 *
 * `open` says that more of it may come: then only its last block is parsed and painted again.
 */
export const Markdown = memo(function Markdown({ text, open = false }: { text: string; open?: boolean }) {
  const [reader] = useState(() => new BlockReader());
  return (
    <div className="flex flex-col gap-3 text-prose wrap-anywhere">
      {reader.read(text, open).map((block) => (
        <Part key={block.at} block={block} />
      ))}
    </div>
  );
});

/** One block. A finished one is never painted again. */
const Part = memo(function Part({ block }: { block: Block }) {
  return blockOf(block.token as MarkedToken, block.open);
});

function blockOf(token: MarkedToken, open: boolean): ReactNode {
  switch (token.type) {
    case "paragraph":
      return (
        <p className="max-w-[72ch] whitespace-pre-line">
          <Inline tokens={token.tokens} />
        </p>
      );
    case "text":
      return token.tokens ? <Inline tokens={token.tokens} /> : token.text;
    case "heading":
      return <Heading token={token} />;
    case "code":
      return <Code text={token.text} language={token.lang ?? ""} open={open} />;
    case "list":
      return <List token={token} open={open} />;
    case "blockquote":
      return (
        <blockquote className="flex max-w-[72ch] flex-col gap-3 border-l-2 border-line-strong pl-4 text-muted">
          <Blocks tokens={token.tokens} />
        </blockquote>
      );
    case "table":
      return <Table token={token} />;
    case "hr":
      return <hr className="my-1 border-line" />;
    case "space":
    case "checkbox":
      return null;
    case "def":
      return (
        <p className="text-dense text-muted">
          [{token.tag}]: <Address href={token.href}>{token.href}</Address>
        </p>
      );
    default:
      return <p className="max-w-[72ch] whitespace-pre-wrap">{token.raw.trimEnd()}</p>;
  }
}

function Blocks({ tokens }: { tokens: readonly Token[] }) {
  return tokens.map((token, index) => <Fragment key={index}>{blockOf(token as MarkedToken, false)}</Fragment>);
}

/** A heading within a page that has its own: its level begins below those of the page. */
function Heading({ token }: { token: Tokens.Heading }) {
  const look = cx("max-w-[72ch] font-semibold text-ink", token.depth === 1 ? "mt-2 text-title" : token.depth === 2 ? "mt-2 text-prose" : "mt-1 text-body");
  const words = <Inline tokens={token.tokens} />;
  if (token.depth === 1) return <h3 className={look}>{words}</h3>;
  if (token.depth === 2) return <h4 className={look}>{words}</h4>;
  return token.depth === 3 ? <h5 className={look}>{words}</h5> : <h6 className={look}>{words}</h6>;
}

function List({ token, open }: { token: Tokens.List; open: boolean }) {
  const items = token.items.map((item, index) => <ListEntry key={index} item={item} loose={token.loose} open={open && index === token.items.length - 1} />);
  const look = cx("flex max-w-[72ch] flex-col pl-6", token.loose ? "gap-3" : "gap-1");
  if (!token.ordered) return <ul className={cx(look, "list-disc")}>{items}</ul>;
  return (
    <ol start={typeof token.start === "number" ? token.start : 1} className={cx(look, "list-decimal")}>
      {items}
    </ol>
  );
}

function ListEntry({ item, loose, open }: { item: Tokens.ListItem; loose: boolean; open: boolean }) {
  const { t } = useTranslation("transcript");
  const last = item.tokens.length - 1;
  return (
    <li className={cx("marker:text-faint", loose && "space-y-3", item.task && "list-none")}>
      {item.task && (
        <span role="img" aria-label={item.checked ? t("taskDone") : t("taskOpen")} className="-ml-5 inline-block w-5 text-muted">
          {item.checked ? "☑" : "☐"}
        </span>
      )}
      {item.tokens.map((token, index) => {
        const isText = token.type === "text" || token.type === "checkbox";
        const part = blockOf(token as MarkedToken, open && index === last);
        return isText || loose ? (
          <Fragment key={index}>{part}</Fragment>
        ) : (
          <div key={index} className="mt-1">
            {part}
          </div>
        );
      })}
    </li>
  );
}

/** A table in a box of its own, in which a wide one scrolls. */
function Table({ token }: { token: Tokens.Table }) {
  const { t } = useTranslation("transcript");
  const side = (align: "center" | "left" | "right" | null) => (align === "right" ? "text-right" : align === "center" ? "text-center" : "text-left");
  return (
    <div role="region" aria-label={t("table")} tabIndex={0} className="max-w-full self-start overflow-x-auto rounded-card border border-line">
      <table className="border-collapse text-body">
        <thead className="bg-sunken">
          <tr>
            {token.header.map((cell, index) => (
              <th key={index} scope="col" className={cx("px-3 py-1.5 font-medium whitespace-nowrap", side(cell.align))}>
                <Inline tokens={cell.tokens} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, index) => (
            <tr key={index} className="border-t border-line">
              {row.map((cell, column) => (
                <td key={column} className={cx("max-w-[40ch] min-w-16 px-3 py-1.5 align-top", side(cell.align))}>
                  <Inline tokens={cell.tokens} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
