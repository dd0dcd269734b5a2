/** The types of the wire. They are made from the server's own document, `openapi.json`. */
export type * from "./schema.gen";
