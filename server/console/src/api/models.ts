import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import { queries } from "./query";
import type { AddedModelAccount, AddModelAccount, ModelProbe, Models } from "./schema";

/** The models that the person may use, and the accounts that offer them. */
export const modelsQuery = queryOptions({
  queryKey: ["models", "all"],
  queryFn: (): Promise<Models> => answer(api.GET("/api/v1/models")),
});

/** Asks again for what a change of accounts can have changed: the models, and the one that answers. */
async function changed(): Promise<void> {
  await Promise.all(["models", "settings"].map((topic) => queries.invalidateQueries({ queryKey: [topic] })));
}

/** Adds an account, or replaces the one of its name, once its model has answered. Nothing is stored if it does not. */
export async function addAccount(body: AddModelAccount): Promise<AddedModelAccount> {
  const added = await answer(api.POST("/api/v1/model-accounts", { body }));
  await changed();
  return added;
}

/** Removes an account with its key. */
export async function removeAccount(id: string): Promise<void> {
  await answer(api.DELETE("/api/v1/model-accounts/{id}", { params: { path: { id } } }));
  await changed();
}

/** Asks a model, or the first model of an account, one small thing. It may cost a few tokens. */
export async function testModel(name: string): Promise<ModelProbe> {
  try {
    return await answer(api.POST("/api/v1/models/test", { body: { name } }));
  } finally {
    await queries.invalidateQueries({ queryKey: ["models"] });
  }
}
