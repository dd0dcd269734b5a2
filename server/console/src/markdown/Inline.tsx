import type { MarkedToken, Token } from "marked";
import { Fragment, type ReactNode } from "react";
import { safeAddress } from "./address";
import { decoded } from "./entities";

/** The pieces of a line: emphasis, code, links. Raw HTML is shown as the text that it is. */
export function Inline({ tokens }: { tokens: readonly Token[] | undefined }) {
  return tokens?.map((token, index) => <Fragment key={index}>{piece(token as MarkedToken)}</Fragment>);
}

function piece(token: MarkedToken): ReactNode {
  switch (token.type) {
    case "text":
      return token.tokens ? <Inline tokens={token.tokens} /> : decoded(token.text);
    case "escape":
      return token.text;
    case "strong":
      return (
        <strong className="font-semibold">
          <Inline tokens={token.tokens} />
        </strong>
      );
    case "em":
      return (
        <em>
          <Inline tokens={token.tokens} />
        </em>
      );
    case "del":
      return (
        <del className="text-muted">
          <Inline tokens={token.tokens} />
        </del>
      );
    case "codespan":
      return <code className="rounded-control bg-sunken px-1 py-0.5 text-[0.9em] wrap-anywhere">{token.text}</code>;
    case "br":
      return <br />;
    case "link":
      return (
        <Address href={token.href}>
          <Inline tokens={token.tokens} />
        </Address>
      );
    case "image":
      // The browser asks no stranger's server for it: that would tell the stranger who reads this.
      return <Address href={token.href}>{token.text ? `${token.text} (${token.href})` : token.href}</Address>;
    case "checkbox":
      return null;
    default:
      return token.raw;
  }
}

/** A link to another site. Without an address that is harmless it is text, and says where it wanted to lead. */
export function Address({ href, children }: { href: string; children: ReactNode }) {
  const address = safeAddress(href);
  if (!address) {
    return (
      <>
        {children} <span className="text-muted">({href})</span>
      </>
    );
  }
  return (
    <a href={address} target="_blank" rel="noopener noreferrer" title={address} className="text-accent underline decoration-1 underline-offset-2 wrap-anywhere">
      {children}
    </a>
  );
}
