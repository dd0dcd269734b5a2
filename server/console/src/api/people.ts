import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import { queries } from "./query";
import type { CreatedKey, Invitation, Keys, People, Person, RoleName } from "./schema";

/** The people and service accounts with this text in their names; all of them for an empty text. */
export function peopleQuery(search: string) {
  return infiniteQueryOptions({
    queryKey: ["people", "list", search],
    queryFn: ({ pageParam }): Promise<People> =>
      answer(
        api.GET("/api/v1/people", {
          params: { query: { limit: 200, ...(search ? { search } : {}), ...(pageParam ? { after: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page: People) => page.next ?? undefined,
  });
}

/** The names of the other people of the tenant and its service accounts: the first 500. */
export const namesQuery = queryOptions({
  queryKey: ["people", "names"],
  queryFn: async (): Promise<string[]> => {
    const found = await answer(api.GET("/api/v1/people", { params: { query: { limit: 500 } } }));
    return found.people.filter((person) => !person.is_you).map((person) => person.name);
  },
});

/** Asks for the list of people again. */
function changed(): Promise<void> {
  return queries.invalidateQueries({ queryKey: ["people"] });
}

/** Invites a person, or makes a new code for one who has an invitation. The code is in no later answer. */
export async function invite(name: string, role: RoleName, key: string): Promise<Invitation> {
  const header = { "Idempotency-Key": key };
  const made = await answer(api.POST("/api/v1/people", { params: { header }, body: { name, role } }));
  await changed();
  return made;
}

/** Adds a user that is no person, for programs. */
export async function addService(name: string, role: RoleName, key: string): Promise<Person> {
  const header = { "Idempotency-Key": key };
  const made = await answer(api.POST("/api/v1/service-accounts", { params: { header }, body: { name, role } }));
  await changed();
  return made;
}

/** Gives a person another role. */
export async function changeRole(id: string, role: RoleName): Promise<void> {
  await answer(api.PUT("/api/v1/people/{id}/role", { params: { path: { id } }, body: { role } }));
  await changed();
}

/** Removes a person, with the person's sign-ins and keys. */
export async function removePerson(id: string): Promise<void> {
  await answer(api.DELETE("/api/v1/people/{id}", { params: { path: { id } } }));
  await changed();
}

/** The keys of a service account, the newest first, page by page. */
export function serviceKeysQuery(service: string) {
  return infiniteQueryOptions({
    queryKey: ["keys", "service", service],
    queryFn: ({ pageParam }): Promise<Keys> =>
      answer(
        api.GET("/api/v1/service-accounts/{id}/keys", {
          params: { path: { id: service }, query: { limit: 100, ...(pageParam ? { after: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page: Keys) => page.next ?? undefined,
  });
}

/** Makes a key for a service account, with the usual scopes. The key is in no later answer. */
export async function addServiceKey(service: string, name: string, key: string): Promise<CreatedKey> {
  const params = { path: { id: service }, header: { "Idempotency-Key": key } };
  const made = await answer(api.POST("/api/v1/service-accounts/{id}/keys", { params, body: { name } }));
  await queries.invalidateQueries({ queryKey: ["keys"] });
  return made;
}
