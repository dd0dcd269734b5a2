/**
 * What lets xterm.js write its styles.
 *
 * The Content-Security-Policy lets no page write a `<style>` element or a `style` attribute, and xterm.js writes both.
 * Style sheets that a script constructs are allowed, and so is the style that a script sets of an element.
 */

/** Runs this with a document whose `style` elements are others, the text of which goes into a constructed style sheet. */
export function withStyles(real: Document, run: () => void): void {
  const createElement = real.createElement.bind(real) as (tag: string, options?: ElementCreationOptions) => HTMLElement;
  // An own property, which hides the document's method until it is deleted.
  Object.defineProperty(real, "createElement", {
    configurable: true,
    value: (tag: string, options?: ElementCreationOptions) => (tag.toLowerCase() === "style" ? styleOf(real) : createElement(tag, options)),
  });
  try {
    run();
  } finally {
    Reflect.deleteProperty(real, "createElement");
  }
}

/** Sets `style` attributes in the way that a script may, from now on. */
export function allowStyleAttributes(): void {
  HTMLElement.prototype.setAttribute = function (this: HTMLElement, name: string, value: string) {
    if (name === "style") this.style.cssText = value;
    else Element.prototype.setAttribute.call(this, name, value);
  };
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
