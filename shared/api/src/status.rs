//! The messages about the state of the server.

use serde::{Deserialize, Serialize};
use shared_types::{ReplicaId, Timestamp};

/// The kind of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum DatabaseKind {
    /// A file of the server.
    Sqlite,
    /// A PostgreSQL, which several servers may use.
    Postgresql,
}

messages! {
    /// The state of the server, and of what the tenant has there.
    pub struct ServerStatus {
        /// The version of the server's program, with its commit where it has one: `0.1.0 (0a1b2c3d4e5f 2026-11-20)`.
        pub version: String,
        /// When the server that answers started.
        pub started_at: Timestamp,
        /// The servers that use the database, the oldest first.
        pub replicas: Vec<Replica>,
        /// The database.
        pub database: DatabaseStatus,
        /// The tenant's runners.
        pub runners: RunnerCounts,
        /// The tenant's operations without an end.
        pub operations_open: u64,
        /// The models that the caller may use, by state.
        pub models: ModelCounts,
    }

    /// A server among those that use the same database.
    pub struct Replica {
        /// Its id, which it has until it stops.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        pub id: ReplicaId,
        /// Since when it is there.
        pub since: Timestamp,
        /// True for the one that answers.
        pub this: bool,
    }

    /// The servers that use the same database.
    pub struct Replicas {
        /// The servers, the oldest first.
        pub replicas: Vec<ReplicaState>,
    }

    /// A server among those that use the same database, and its work for all tenants.
    pub struct ReplicaState {
        /// Its id, which it has until it stops.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        pub id: ReplicaId,
        /// True for the one that answers.
        pub this: bool,
        /// Since when it is there.
        pub since: Timestamp,
        /// The version of its program. Absent of an earlier release.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub version: Option<String>,
        /// The host and port at which it answers the other servers. Absent where it does not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub address: Option<String>,
        /// The time since the server that answers last saw it renew its lease, in milliseconds. Absent if it has not seen
        /// it yet, and where the database is a file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub renewed_ms_ago: Option<u64>,
        /// The runners whose links it holds.
        pub links: u64,
        /// The turns that it works on. Turns that only wait are nobody's.
        pub turns: u64,
        /// Since when the operator lets it drain. Absent where it works.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub draining_since: Option<Timestamp>,
    }

    /// The database of the server.
    pub struct DatabaseStatus {
        /// Its kind.
        pub kind: DatabaseKind,
        /// The number of its schema.
        pub schema: i64,
        /// The time in which it answered just now, in microseconds.
        pub answered_us: u64,
    }

    /// Runners by whether the server reaches them.
    pub struct RunnerCounts {
        /// Those with a link.
        pub online: u64,
        /// Those without a link, also if they are locked.
        pub away: u64,
    }

    /// Models by their last known state.
    pub struct ModelCounts {
        /// Those that answer, or were not asked yet.
        pub ready: u64,
        /// Those that failed several times in a row and are left alone for a while.
        pub cooling_down: u64,
        /// Those whose provider refuses the account.
        pub refused: u64,
        /// Those of a runner that is away, or whose model server does not answer.
        pub away: u64,
    }
}
