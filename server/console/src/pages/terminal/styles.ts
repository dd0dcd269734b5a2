/**
 * A document in which xterm.js can write its styles.
 *
 * The Content-Security-Policy lets no page write a `<style>` element, and xterm.js writes three of them. Style sheets that
 * a script constructs are allowed. So a `style` element that is asked of this document is another element, whose text
 * goes into such a sheet.
 */
export function documentWithStyles(real: Document): Document {
  return new Proxy(real, {
    get(target, name) {
      if (name === "createElement") {
        return (tag: string, options?: ElementCreationOptions) => (tag.toLowerCase() === "style" ? styleOf(target) : target.createElement(tag, options));
      }
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? (value as (...all: unknown[]) => unknown).bind(target) : value;
    },
    set: (target, name, value) => Reflect.set(target, name, value, target),
  });
}

function styleOf(real: Document): HTMLElement {
  const sheet = new CSSStyleSheet();
  real.adoptedStyleSheets = [...real.adoptedStyleSheets, sheet];
  const element = real.createElement("span");
  element.hidden = true;
  Object.defineProperty(element, "textContent", {
    get: () => "",
    set: (text: string) => sheet.replaceSync(text),
  });
  const remove = element.remove.bind(element);
  element.remove = () => {
    real.adoptedStyleSheets = real.adoptedStyleSheets.filter((one) => one !== sheet);
    remove();
  };
  return element;
}
