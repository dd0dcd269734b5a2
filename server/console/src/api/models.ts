import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import type { Models } from "./schema";

/** The models that the person may use, and the accounts that offer them. */
export const modelsQuery = queryOptions({
  queryKey: ["models", "all"],
  queryFn: (): Promise<Models> => answer(api.GET("/api/v1/models")),
});
