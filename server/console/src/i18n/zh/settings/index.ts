import { extensions } from "./extensions";
import { keys } from "./keys";
import { models } from "./models";
import { page } from "./page";
import { rules } from "./rules";
import { values } from "./values";

export const settings = { ...page, ...values, ...models, ...rules, ...extensions, ...keys };
