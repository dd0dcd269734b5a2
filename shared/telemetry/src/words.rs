//! The closed sets of values that labels have in both programs. Their sources are elsewhere in the workspace, and tests
//! there hold the two together.

use crate::metrics::{OTHER, Series};

/// Kinds of requests that run a process.
const RUNS: &[&str] = &["exec"];

/// Kinds of requests about files.
const FILES: &[&str] = &[
    "read",
    "write",
    "edit",
    "list",
    "glob",
    "grep",
    "download",
    "upload",
    "stat",
    "make_directory",
    "move",
    "remove",
    "pack",
    "unpack",
    "survey",
];

/// The kind of operations of an unknown kind, such as those that an earlier release has placed.
const UNKNOWN: &[&str] = &[OTHER];

/// The causes of the end of requests that run a process.
const RUN_CAUSES: &[&str] = &[
    "exited",
    "not_started",
    "timeout",
    "idle",
    "cancelled",
    "orphaned",
    "out_of_memory",
    "disk_full",
    "supervisor_lost",
    "host_reboot",
    "sandbox_stopped",
    "refused",
    "lost",
];

/// The causes of the end of requests about files.
const FILE_CAUSES: &[&str] = &["done", "failed", "refused", "lost"];

/// The causes of any end.
const CAUSES: &[&str] = &[
    "exited",
    "not_started",
    "timeout",
    "idle",
    "cancelled",
    "orphaned",
    "out_of_memory",
    "disk_full",
    "supervisor_lost",
    "host_reboot",
    "sandbox_stopped",
    "done",
    "failed",
    "refused",
    "lost",
];

/// The reasons why spans of traces were dropped.
pub(crate) const SPAN_DROPS: &[&str] = &["full", "not_taken"];

/// Operations by kind and cause.
pub(crate) const RUN_ENDS: Series = &[RUNS, RUN_CAUSES];
/// The same for [`FILES`].
pub(crate) const FILE_ENDS: Series = &[FILES, FILE_CAUSES];
/// The same for [`UNKNOWN`].
pub(crate) const UNKNOWN_ENDS: Series = &[UNKNOWN, CAUSES];
