// @vitest-environment happy-dom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Markdown } from "./Markdown";

vi.mock("react-i18next", () => ({ useTranslation: () => ({ t: (name: string) => name, i18n: { language: "en" } }) }));
vi.mock("@/ui/Code", () => ({ Code: ({ text }: { text: string }) => <pre>{text}</pre> }));
Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });

const box = document.createElement("div");
const root = createRoot(box);
const paint = (text: string) => act(() => root.render(<Markdown text={text} />));
afterEach(() => act(() => root.render(null)));

describe("Markdown of a stranger", () => {
  it("shows raw HTML as text", async () => {
    await paint('<script>alert(1)</script>\n\ntext <img src=x onerror="alert(1)"> <b>x</b>\n\n<svg onload=alert(1)>');
    expect(box.querySelector("script, img, svg, b")).toBeNull();
    expect(box.textContent).toContain("<script>alert(1)</script>");
    expect(box.textContent).toContain('<img src=x onerror="alert(1)">');
  });

  it("makes links of harmless addresses only", async () => {
    const schemes = ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "/admin", "//example.org", "java&#115;cript:alert(1)", "blob:https://x/y"];
    await paint(schemes.map((address) => `[x](<${address}>)`).join("\n\n"));
    expect([...box.querySelectorAll("a")].map((link) => link.getAttribute("href"))).toEqual([]);
    await paint("[x](https://example.org/a) <mailto:a@example.org> http://example.org/b");
    const links = [...box.querySelectorAll("a")];
    expect(links.map((link) => link.getAttribute("href"))).toEqual(["https://example.org/a", "mailto:a@example.org", "http://example.org/b"]);
    expect(links.every((link) => link.rel === "noopener noreferrer" && link.target === "_blank")).toBe(true);
  });

  it("loads no image, and says where it would be", async () => {
    await paint("![a picture](https://example.org/i.png)");
    expect(box.querySelector("img")).toBeNull();
    expect(box.textContent).toBe("a picture (https://example.org/i.png)");
    expect(box.querySelector("a")?.href).toBe("https://example.org/i.png");
  });

  it("decodes the names of letters, once", async () => {
    await paint("a &amp; b &lt;i&gt; &amp;lt; &#x41; `&amp;`");
    expect(box.textContent).toBe("a & b <i> &lt; A &amp;");
  });
});
