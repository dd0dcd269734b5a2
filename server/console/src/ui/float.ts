import { createContext } from "react";

/**
 * The element in which tooltips and menus float; null for the page itself.
 *
 * A dialog lies above all of the page, so what floats over its content must be inside of it.
 */
export const FloatIn = createContext<HTMLElement | null>(null);
