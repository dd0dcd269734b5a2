//! The messages about sandboxes: people's containers in a runner's pool.

use serde::{Deserialize, Serialize};
use shared_types::{RunnerId, SandboxId, Timestamp};

messages! {
    /// A person's container in a runner's pool.
    pub struct Sandbox {
        /// Its id.
        pub id: SandboxId,
        /// The runner's id.
        pub runner: RunnerId,
        /// The runner's name.
        pub runner_name: String,
        /// The name of its owner.
        pub owner: String,
        /// The template that it is made from.
        pub template: String,
        /// The privilege of its commands, as its runner last reported it: `strict` (an ordinary user) or `sudo` (root
        /// in the sandbox).
        #[serde(default = "strict")]
        pub privilege: String,
        /// Its state: `wanted`, `starting`, `running`, `stopped` or `failed`.
        pub state: String,
        /// The reason for its state, where there is one to tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
        /// When it entered that state.
        pub since: Timestamp,
        /// The memory limit of all its commands together, in bytes.
        pub memory_bytes: u64,
        /// The limit of processor time, in thousandths of a processor.
        pub cpu_millis: u32,
        /// The most processes and threads at the same time.
        pub processes: u32,
        /// The longest time without an operation before it is stopped, in milliseconds.
        pub idle_for_ms: u64,
        /// Its network access: `none` or `open`.
        pub network: String,
    }

    /// A change of a sandbox's state that its runner reported.
    pub struct StateChange {
        /// When the server received the report.
        pub at: Timestamp,
        /// The new state: `starting`, `running`, `stopped`, `failed` or `removed`.
        pub state: String,
        /// The reason, where there is one to tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
    }

    /// The recent changes of a sandbox's state.
    pub struct StateChanges {
        /// The changes, the newest last.
        pub changes: Vec<StateChange>,
    }

    /// A page of sandboxes.
    pub struct Sandboxes {
        /// The sandboxes, by id.
        pub sandboxes: Vec<Sandbox>,
        /// The value of `after` for the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// Asks for the caller's own sandbox on a runner.
    #[serde(deny_unknown_fields)]
    pub struct CreateSandbox {
        /// The runner's name or id.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 127))]
        pub runner: String,
    }

    /// Changes a sandbox's template and limits from its next start on. Absent fields stay as they are.
    #[serde(deny_unknown_fields)]
    #[derive(Default)]
    pub struct ChangeSandbox {
        /// The template that it is made from, one of its pool's. Its files stay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 63))]
        pub template: Option<String>,
        /// The memory limit, in bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 67108864, maximum = 1099511627776u64))]
        pub memory_bytes: Option<u64>,
        /// The limit of processor time, in thousandths of a processor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 50, maximum = 1024000))]
        pub cpu_millis: Option<u32>,
        /// The most processes and threads at the same time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 8, maximum = 32768))]
        pub processes: Option<u32>,
        /// The longest time without an operation before it is stopped, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 60000, maximum = 2592000000u64))]
        pub idle_for_ms: Option<u64>,
        /// Its network access: `none` or `open`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(pattern = "^(none|open)$"))]
        pub network: Option<String>,
    }
}

/// The privilege of commands, where the server's answer names none.
fn strict() -> String {
    "strict".to_owned()
}
