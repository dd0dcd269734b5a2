//! The messages about runners.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shared_types::{Mode, RunnerId, SandboxId, Timestamp};

messages! {
    /// An enrolled runner.
    pub struct Runner {
        /// Its id.
        pub id: RunnerId,
        /// Its name, unique in the tenant.
        pub name: String,
        /// True if it is connected now.
        pub online: bool,
        /// When it was last connected; absent before its first connection.
        pub last_seen: Option<Timestamp>,
        /// True if it is the caller's active runner: by choice, or as the tenant's default.
        pub active: bool,
        /// True if it is locked because its folder was copied. Remove the runner and enrol it again.
        #[serde(default)]
        pub locked: bool,
        /// When it last showed that the server's database was restored from an older copy; absent if that was over a
        /// week ago.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub server_went_back: Option<Timestamp>,
        /// The reason why the server refuses its links, and the remedy: its protocol version is too old. Absent where
        /// the server accepts them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub refused: Option<String>,
        /// True if it drains: it is given nothing new to run, and what runs there goes on.
        #[serde(default)]
        pub draining: bool,
        /// The name of the person who lets it drain; absent where it takes work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub drained_by: Option<String>,
        /// True if the server removes it once it leaves for good or stays away.
        #[serde(default)]
        pub ephemeral: bool,
        /// The isolation that it reports for its sandboxes: `none`, or properties joined by `+`.
        pub isolation: String,
        /// True if an admin or the operator has granted that isolation.
        #[serde(default)]
        pub isolation_believed: bool,
        /// The name of the admin who has granted it; absent where the operator has, or no one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub isolation_granted_by: Option<String>,
        /// The directory of its first workspace, for people.
        pub workspace: String,
        /// All its workspaces, as it reported them on its newest connection; the first one first.
        #[serde(default)]
        pub sandboxes: Vec<Workspace>,
        /// The pool of the runner; absent where it has workspaces instead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub pool: Option<Pool>,
        /// The most freedom of an agent by the policy of its machine (`/etc/gantry/policy.toml`), which no server loosens;
        /// absent where the machine has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ceiling: Option<Mode>,
        /// Its host's name.
        pub hostname: String,
        /// Its host's system, such as `linux/x86_64`.
        pub platform: String,
        /// The version of its software.
        pub version: String,
        /// Its figures of some seconds ago; absent where it is not linked to the replica that answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub figures: Option<RunnerFigures>,
        /// Its labels.
        #[serde(default)]
        pub labels: BTreeMap<String, String>,
        /// The name of its owner; absent where the owner was removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub owner: Option<String>,
        /// True if every person of the tenant may use it.
        #[serde(default)]
        pub shared_with_everyone: bool,
        /// The names of the people that it is shared with.
        #[serde(default)]
        pub shared_with: Vec<String>,
    }

    /// The load of a runner, as it reported it.
    pub struct RunnerFigures {
        /// The number of operations that run now.
        pub operations_running: u64,
        /// Output on its disk that the server does not have yet, in bytes.
        pub spool_bytes: u64,
        /// Space on the disk of its home that its user may fill, in bytes.
        pub disk_free_bytes: u64,
    }

    /// A folder of a runner that is a sandbox.
    pub struct Workspace {
        /// Its id.
        pub id: SandboxId,
        /// Its name on its runner; people choose it as `RUNNER/WORKSPACE`.
        pub name: String,
        /// The folder, for people.
        pub root: String,
        /// The isolation that its runner reports for it: `none`, or properties joined by `+`.
        pub isolation: String,
        /// The reason why operations fail there; absent where it works.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub problem: Option<String>,
    }

    /// A runner's means of making sandboxes.
    pub struct Pool {
        /// The kind of backend: `docker`.
        pub backend: String,
        /// The templates of its sandboxes; the first is the default.
        pub templates: Vec<String>,
        /// The templates whose commands may be root in their sandbox.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub sudo_templates: Vec<String>,
        /// The isolation that its runner reports for its sandboxes: `none`, or properties joined by `+`.
        pub isolation: String,
        /// The reason why it cannot make sandboxes now; absent where it can.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub problem: Option<String>,
    }

    /// A page of the runners that the user may choose.
    pub struct Runners {
        /// The runners, by name.
        pub runners: Vec<Runner>,
        /// The value of `after` for the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// Chooses the runner of a user or a session.
    #[serde(deny_unknown_fields)]
    pub struct UseRunner {
        /// Its name or its id, alone or with one of its workspaces (`laptop/api`).
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 127))]
        pub runner: String,
    }

    /// Changes a runner. Absent fields stay as they are.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct ChangeRunner {
        /// Its name, which no other runner of the tenant may have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 63, pattern = r"^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$"))]
        pub name: Option<String>,
        /// True to let it drain: it is given nothing new to run, and what runs there goes on. False to give it work
        /// again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub draining: Option<bool>,
    }
}
