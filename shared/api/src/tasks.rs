//! The messages about background commands.

use serde::{Deserialize, Serialize};
use shared_types::{OperationId, Timestamp};

messages! {
    /// A page of a session's background commands.
    pub struct Tasks {
        /// All running tasks and the last 100 ended ones, by number.
        pub tasks: Vec<Task>,
        /// The value of `after` for the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// A command that runs in the background.
    pub struct Task {
        /// Its number in the session, from 1.
        #[cfg_attr(feature = "openapi", schema(minimum = 1))]
        pub number: u32,
        /// Its operation: read its output or stop it by this id.
        pub operation: OperationId,
        /// The tool that started it.
        pub tool: String,
        /// The arguments of that call as the model wrote them, the first 4096 bytes.
        pub arguments: String,
        /// The name of its runner at that time.
        pub runner: String,
        /// When it started.
        pub started_at: Timestamp,
        /// Its end, for people; absent while it runs, to the server's knowledge.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ended: Option<String>,
    }
}
