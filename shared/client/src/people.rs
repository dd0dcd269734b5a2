//! People, the sharing of runners, and the audit log.

use reqwest::Method;
use shared_api::{
    AddServiceAccount, AuditLog, ChangeRole, ChangeRunner, CreateKey, CreatedKey, Invitation,
    InvitePerson, Key, Keys, People, Person, RoleName, Runner, ShareRunner, UnshareRunner,
};
use shared_types::{RunnerId, Timestamp, UserId};

use crate::{Client, ClientError};

impl Client {
    /// Everybody of the tenant, by name.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn people(&self) -> Result<Vec<Person>, ClientError> {
        self.people_found("").await
    }

    /// The people with this text in their names (empty: all people), by name.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn people_found(&self, name: &str) -> Result<Vec<Person>, ClientError> {
        let query = [("search", name.to_owned())];
        let found = self.http.list::<People>(&["people"], &query, usize::MAX);
        found.await
    }

    /// Invites a person; the code is in this answer only.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn invite(&self, name: &str, role: RoleName) -> Result<Invitation, ClientError> {
        let name = name.to_owned();
        let body = InvitePerson { name, role };
        self.http.call(Method::POST, &["people"], &body).await
    }

    /// Adds a service account.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn add_service_account(
        &self,
        name: &str,
        role: RoleName,
    ) -> Result<Person, ClientError> {
        let name = name.to_owned();
        let body = AddServiceAccount { name, role };
        let path = ["service-accounts"];
        self.http.call(Method::POST, &path, &body).await
    }

    /// The keys of a service account, the newest first.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn service_keys(&self, id: UserId) -> Result<Vec<Key>, ClientError> {
        let path = ["service-accounts", &id.to_string(), "keys"];
        let found: Keys = self.http.get(&path, &[]).await?;
        Ok(found.keys)
    }

    /// Makes an API key of a service account; the key itself is in this answer only.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn create_service_key(
        &self,
        id: UserId,
        terms: &CreateKey,
    ) -> Result<CreatedKey, ClientError> {
        let path = ["service-accounts", &id.to_string(), "keys"];
        self.http.call(Method::POST, &path, terms).await
    }

    /// Changes what a person may do.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn change_role(&self, id: UserId, role: RoleName) -> Result<Person, ClientError> {
        let path = ["people", &id.to_string(), "role"];
        self.http
            .call(Method::PUT, &path, &ChangeRole { role })
            .await
    }

    /// Removes a person.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn remove_person(&self, id: UserId) -> Result<(), ClientError> {
        self.http.delete(&["people", &id.to_string()]).await
    }

    /// Shares a runner with a person, by name or id, or with `everyone`.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn share_runner(&self, id: RunnerId, with: &str) -> Result<Runner, ClientError> {
        let with = with.to_owned();
        let path = ["runners", &id.to_string(), "share"];
        let body = ShareRunner { with };
        self.http.call(Method::POST, &path, &body).await
    }

    /// Takes back that a runner is shared with a person or with `everyone`, or, where none is named,
    /// at all.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn unshare_runner(
        &self,
        id: RunnerId,
        with: Option<&str>,
    ) -> Result<Runner, ClientError> {
        let with = with.map(str::to_owned);
        let path = ["runners", &id.to_string(), "unshare"];
        let body = UnshareRunner { with };
        self.http.call(Method::POST, &path, &body).await
    }

    /// Renames a runner, lets it drain, or gives it work again.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn change_runner(
        &self,
        id: RunnerId,
        change: &ChangeRunner,
    ) -> Result<Runner, ClientError> {
        let path = ["runners", &id.to_string()];
        self.http.call(Method::PATCH, &path, change).await
    }

    /// Becomes the owner of a runner.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn take_runner(&self, id: RunnerId) -> Result<Runner, ClientError> {
        let path = ["runners", &id.to_string(), "take"];
        let nothing = serde_json::json!({});
        self.http.call(Method::POST, &path, &nothing).await
    }

    /// Lets what a runner reports of its isolation count, or (`trusted` is false) count no longer.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn trust_runner(&self, id: RunnerId, trusted: bool) -> Result<Runner, ClientError> {
        let verb = if trusted { "trust" } else { "distrust" };
        let path = ["runners", &id.to_string(), verb];
        let nothing = serde_json::json!({});
        self.http.call(Method::POST, &path, &nothing).await
    }

    /// A page of the audit log: at most 200 entries behind `after`, or the newest `limit` of all; only
    /// what `who` did, and not before `since`.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn audit(
        &self,
        after: Option<u64>,
        who: Option<&str>,
        since: Option<Timestamp>,
        limit: u32,
    ) -> Result<AuditLog, ClientError> {
        let query = [
            ("after", after.map(|after| after.to_string())),
            ("who", who.map(str::to_owned)),
            ("since", since.map(|since| since.to_string())),
            ("limit", Some(limit.to_string())),
        ];
        let given = query.into_iter();
        let given: Vec<_> = given
            .filter_map(|(name, value)| Some((name, value?)))
            .collect();
        self.http.get(&["audit"], &given).await
    }
}
