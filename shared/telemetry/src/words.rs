//! The closed sets of values that labels have in both programs. What they come from is elsewhere in the
//! workspace, and tests there hold the two together.

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
];

/// Kinds that nothing is known of, as of an operation that an earlier release has placed.
const UNKNOWN: &[&str] = &[OTHER];

/// Why what runs a process ended.
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

/// Why what is done to files ended.
const FILE_CAUSES: &[&str] = &["done", "failed", "refused", "lost"];

/// Why anything ended.
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

/// Why spans of traces were dropped.
pub(crate) const SPAN_DROPS: &[&str] = &["full", "not_taken"];

/// Operations by kind and cause.
pub(crate) const RUN_ENDS: Series = &[RUNS, RUN_CAUSES];
/// As [`RUN_ENDS`].
pub(crate) const FILE_ENDS: Series = &[FILES, FILE_CAUSES];
/// As [`RUN_ENDS`].
pub(crate) const UNKNOWN_ENDS: Series = &[UNKNOWN, CAUSES];
