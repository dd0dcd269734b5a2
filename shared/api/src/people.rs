//! The messages about people and their rights.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shared_types::{CredentialId, Timestamp, UserId};

/// What a person may do at most; each has the rights of those behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum RoleName {
    /// Everything.
    Owner,
    /// Everything but to change owners.
    Admin,
    /// To work.
    Member,
    /// To look.
    Viewer,
}

/// What a key is good for.
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

/// What came of it.
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
        /// What the person may do.
        pub role: RoleName,
        /// Whether it is the person who asks.
        #[serde(default)]
        pub is_you: bool,
        /// Whether it is a service account, which has keys and never signs in.
        #[serde(default)]
        pub is_service: bool,
        /// Whether the person has ever signed in, or the service account has had a key.
        #[serde(default)]
        pub joined: bool,
        /// Until when the person's invitation or sign-in code can be used, where there is one that was
        /// not; it may be over.
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
        /// Where the next page begins, to be passed as `after`; absent where this is the last one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// Invites a person.
    #[serde(deny_unknown_fields)]
    pub struct InvitePerson {
        /// The name: a–z, 0–9 and dashes, beginning with a letter; capital letters are made small.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 32, pattern = r"^[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?$"))]
        pub name: String,
        /// What the person may do.
        pub role: RoleName,
    }

    /// Adds a service account.
    #[serde(deny_unknown_fields)]
    pub struct AddServiceAccount {
        /// The name: a–z, 0–9 and dashes, beginning with a letter; capital letters are made small.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 32, pattern = r"^[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?$"))]
        pub name: String,
        /// What it may do; not `owner`.
        pub role: RoleName,
    }

    /// A person was invited; the code is shown once.
    pub struct Invitation {
        /// The person.
        pub person: Person,
        /// The one-time code with which the person signs in.
        pub code: String,
        /// Until when it can be used.
        pub expires_at: Timestamp,
    }

    /// Changes what a person may do.
    #[serde(deny_unknown_fields)]
    pub struct ChangeRole {
        /// What the person may do from now on.
        pub role: RoleName,
    }

    /// With whom a runner is shared, or not any more.
    #[serde(deny_unknown_fields)]
    pub struct ShareRunner {
        /// The name or id of a person, or `everyone`.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 63))]
        pub with: String,
    }

    /// From whom a runner is taken back.
    #[serde(deny_unknown_fields)]
    pub struct UnshareRunner {
        /// The name or id of a person, or `everyone`; absent for all with whom it is shared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 63))]
        pub with: Option<String>,
    }

    /// Something that was done, or refused.
    pub struct AuditEntry {
        /// Its place in the log, from 1, without gaps.
        pub seq: u64,
        /// When.
        pub at: Timestamp,
        /// Who did it: the name of a person or a runner, else the id, or `system`.
        pub who: String,
        /// The id of who did it, or `system`.
        pub who_id: String,
        /// What was done, such as `runner.enrolled`.
        pub what: String,
        /// What it was done to: a name, else the id.
        pub to: String,
        /// The id of what it was done to.
        pub to_id: String,
        /// What came of it.
        pub outcome: AuditOutcome,
        /// From which address, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub address: Option<String>,
        /// With which key or sign-in, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub credential: Option<CredentialId>,
        /// More about it, by kind.
        #[cfg_attr(feature = "openapi", schema(value_type = Object))]
        pub detail: serde_json::Value,
    }

    /// A page of the audit log.
    pub struct AuditLog {
        /// The entries, in order.
        pub entries: Vec<AuditEntry>,
        /// The names of what the ids in the details stand for, as far as there are any.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub names: BTreeMap<String, String>,
        /// The number of the last entry where others follow it, to be passed as `after`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }
}
