//! The messages about the caller.

use serde::{Deserialize, Serialize};
use shared_types::{RunnerId, UserId};

messages! {
    /// The caller, and the model and runner that the caller works with.
    pub struct Me {
        /// The person.
        pub user: User,
        /// The tenant's name.
        pub tenant: String,
        /// The model that answers in the person's new sessions.
        pub model: Model,
        /// The runner for the person's tools: the person's choice, or the tenant's default.
        pub active_runner: Option<RunnerId>,
        /// The name of that runner, also after it was removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub active_runner_name: Option<String>,
        /// The workspace that the person chose on it; absent for its first one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub active_workspace: Option<String>,
        /// True if that runner was removed. Tools do not move to another runner.
        #[serde(default)]
        pub active_runner_removed: bool,
        /// True if that runner is the tenant's default and the person has chosen none.
        #[serde(default)]
        pub active_runner_is_default: bool,
    }

    /// A person or service account.
    pub struct User {
        /// Its id.
        pub id: UserId,
        /// Its name.
        pub name: String,
        /// Its role in the tenant.
        pub role: String,
    }

    /// The model that answers.
    pub struct Model {
        /// The name that people see.
        pub name: String,
        /// True for the practice model, which is no AI.
        pub practice: bool,
    }
}
