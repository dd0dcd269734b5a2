/** The types of the API, generated from the server's OpenAPI document by `npm run types`. */
export type * from "./schema.gen";
