//! The messages about sessions and their logs.

use serde::{Deserialize, Serialize};
use shared_types::{RunnerId, SessionEvent, SessionId, Timestamp, TurnId};

messages! {
    /// Begins a session.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct CreateSession {
        /// The title in lists; empty for the beginning of the first message.
        #[serde(default)]
        #[cfg_attr(feature = "openapi", schema(max_length = 252))]
        pub title: String,
        /// The name or id of the runner to pin the session to, alone or with a workspace (`laptop/api`). Absent for the
        /// user's active runner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub runner: Option<String>,
        /// The model that answers in the session, a tier, `auto`, or several with commas between them. Absent for the
        /// user's own choice.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        /// The directory of the session, relative to the root of the workspace; empty for the root. Commands start
        /// there, and file tools resolve paths from there.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
        pub directory: String,
    }

    /// A session in a list.
    pub struct Session {
        /// Its id.
        pub id: SessionId,
        /// The title in lists.
        pub title: String,
        /// The directory of the session, relative to the root of the workspace; empty for the root.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub directory: String,
        /// When it began.
        pub created_at: Timestamp,
        /// When its newest event happened.
        pub updated_at: Timestamp,
        /// The number of the newest event.
        pub last_seq: u64,
        /// The turn that is under way.
        pub running_turn: Option<TurnId>,
        /// The runner that it is pinned to; absent where it uses the user's active runner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub runner: Option<PinnedRunner>,
        /// When its user archived it; absent where it is not archived.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub archived_at: Option<Timestamp>,
        /// The number of links to it that have not been revoked.
        #[serde(default)]
        pub links: u64,
        /// The number of its questions that wait for the user's answer: agents ask before they act, or to know more.
        #[serde(default)]
        pub waiting_approvals: u64,
        /// The agent that works in it; absent of a session that the user began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub agent: Option<SessionAgent>,
    }

    /// The agent that works in a session.
    pub struct SessionAgent {
        /// The session whose call began it.
        pub parent: SessionId,
        /// Its name, such as `explore-2`.
        pub name: String,
        /// The name of its role.
        pub role: String,
    }

    /// The runner that a session is pinned to. If the runner was removed, the server refuses the session's calls until
    /// the session is pinned to another runner or unpinned.
    pub struct PinnedRunner {
        /// Its id.
        pub id: RunnerId,
        /// Its name.
        pub name: String,
        /// The workspace on it; absent for its first one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub workspace: Option<String>,
    }

    /// Changes a session's entry in lists. Absent fields stay as they are.
    #[serde(deny_unknown_fields)]
    pub struct ChangeSession {
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 252))]
        pub title: Option<String>,
        /// True to archive it, false to unarchive it. The next message also unarchives it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub archived: Option<bool>,
    }

    /// A page of a user's sessions, the most recently used first.
    pub struct Sessions {
        /// The sessions.
        pub sessions: Vec<Session>,
        /// The value of `after` for the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// A page of a session's log.
    pub struct Events {
        /// The events, by number.
        pub events: Vec<SessionEvent>,
        /// The value of `after` for the next page: the number of the last event here; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
        /// True if there is a `next`; for clients of earlier releases.
        pub more: bool,
    }
}
