//! The messages about people and their rights.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shared_types::{CredentialId, Timestamp, UserId};

/// The rights of a person; each role includes those after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum RoleName {
    /// Every right.
    Owner,
    /// Every right except to change owners.
    Admin,
    /// To work.
    Member,
    /// To look.
    Viewer,
}

/// A right that a key can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ScopeName {
    /// To talk with the agent.
    Chat,
    /// To add, share and remove runners.
    Runners,
    /// To run commands and copy files on runners.
    Exec,
    /// To look at what is there.
    Read,
    /// To read the server's metrics.
    Metrics,
    /// To manage keys, people and settings, and to read the audit log.
    Admin,
}

/// The outcome of an audited action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum AuditOutcome {
    /// It was done.
    Done,
    /// It was refused; the detail says why.
    Refused,
}

messages! {
    /// A person of the tenant, or a service account.
    pub struct Person {
        /// Its id.
        pub id: UserId,
        /// Its name, unique in the tenant.
        pub name: String,
        /// The person's role.
        pub role: RoleName,
        /// True if this person is the caller.
        #[serde(default)]
        pub is_you: bool,
        /// True if it is a service account, which has keys and never signs in.
        #[serde(default)]
        pub is_service: bool,
        /// True if the person has ever signed in, or the service account has had a key.
        #[serde(default)]
        pub joined: bool,
        /// The time at which the person's unused invitation or sign-in code expires; it may have passed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub invited_until: Option<Timestamp>,
        /// When one of the person's keys or sign-ins was last used, to the minute.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last_used_at: Option<Timestamp>,
    }

    /// A page of the tenant's people.
    pub struct People {
        /// The people, by name.
        pub people: Vec<Person>,
        /// The value of `after` for the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// Invites a person.
    #[serde(deny_unknown_fields)]
    pub struct InvitePerson {
        /// The name: a–z, 0–9 and dashes, beginning with a letter. Capital letters become small.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 32, pattern = r"^[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?$"))]
        pub name: String,
        /// The person's role.
        pub role: RoleName,
    }

    /// Adds a service account.
    #[serde(deny_unknown_fields)]
    pub struct AddServiceAccount {
        /// The name: a–z, 0–9 and dashes, beginning with a letter. Capital letters become small.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 32, pattern = r"^[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?$"))]
        pub name: String,
        /// The account's role; not `owner`.
        pub role: RoleName,
    }

    /// A person was invited; the code is shown once.
    pub struct Invitation {
        /// The person.
        pub person: Person,
        /// The one-time code with which the person signs in.
        pub code: String,
        /// The time at which the code expires.
        pub expires_at: Timestamp,
    }

    /// Changes a person's role.
    #[serde(deny_unknown_fields)]
    pub struct ChangeRole {
        /// The person's new role.
        pub role: RoleName,
    }

    /// Shares a runner with a person or with everyone.
    #[serde(deny_unknown_fields)]
    pub struct ShareRunner {
        /// The name or id of a person, or `everyone`.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 63))]
        pub with: String,
    }

    /// Ends the sharing of a runner.
    #[serde(deny_unknown_fields)]
    pub struct UnshareRunner {
        /// The name or id of a person, or `everyone`; absent to end it for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 63))]
        pub with: Option<String>,
    }

    /// An action that was done or refused.
    pub struct AuditEntry {
        /// Its place in the log, from 1, without gaps.
        pub seq: u64,
        /// When it happened.
        pub at: Timestamp,
        /// The actor: the name of a person or a runner, else the id, or `system`.
        pub who: String,
        /// The actor's id, or `system`.
        pub who_id: String,
        /// The action, such as `runner.enrolled`.
        pub what: String,
        /// The object of the action: a name, else the id.
        pub to: String,
        /// The object's id.
        pub to_id: String,
        /// The outcome.
        pub outcome: AuditOutcome,
        /// The actor's address, where the server knows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub address: Option<String>,
        /// The actor's key or sign-in, where the server knows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub credential: Option<CredentialId>,
        /// More facts, which depend on the action.
        #[cfg_attr(feature = "openapi", schema(value_type = Object))]
        pub detail: serde_json::Value,
    }

    /// A page of the audit log.
    pub struct AuditLog {
        /// The entries, in order.
        pub entries: Vec<AuditEntry>,
        /// The names for ids in the details, where names are known.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub names: BTreeMap<String, String>,
        /// The value of `after` for the next page: the number of the last entry here; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }
}
