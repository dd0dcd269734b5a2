//! The metrics of a runner, all of them. `docs/metrics.md` is made from this list.

use crate::{
    metrics::list,
    words::{FILE_ENDS, RUN_ENDS, SPAN_DROPS, UNKNOWN_ENDS},
};

/// The reason why there is no link any more, or an attempt at one failed.
const REASONS: &[&str] = &[
    "connect",
    "refused",
    "lost",
    "closed",
    "changed",
    "network_changed",
    "unproven",
    "aged",
    "ended",
];

list! {
    /// 1 while the server has welcomed the runner's link, else 0.
    LINKED: Gauge Count "gantry_runner_linked";
    /// Links that ended, and attempts at one that failed, by reason. The runner tries again.
    LINK_FAILURES: Counter Count "gantry_runner_link_failures_total" [reason] &[REASONS];

    /// Operations that ended, by kind of request and cause. One that was refused before it was accepted is not among them.
    OPERATIONS_ENDED: Counter Count "gantry_runner_operations_ended_total" [kind, cause] RUN_ENDS, FILE_ENDS, UNKNOWN_ENDS;
    /// Operations that run now.
    OPERATIONS_RUNNING: Gauge Count "gantry_runner_operations_running";
    /// The time from when a command was taken up until it was handed to its supervisor, in seconds.
    OPERATION_START_DURATION: Histogram Seconds "gantry_runner_operation_start_duration_seconds";
    /// Bytes of commands' output that were sent to the server, those that were sent again included.
    OUTPUT_BYTES: Counter Bytes "gantry_runner_output_bytes_total";

    /// The time that the disk took for a sync of the journal, in seconds.
    JOURNAL_SYNC_DURATION: Histogram Seconds "gantry_runner_journal_sync_duration_seconds";
    /// Output of commands that is kept on disk until the server has it, in bytes.
    SPOOL_BYTES: Gauge Bytes "gantry_runner_spool_bytes";
    /// Room on the disk of the runner's home, in bytes, as its user may have it.
    DISK_FREE_BYTES: Gauge Bytes "gantry_runner_disk_free_bytes";

    /// Spans of traces that the collector took.
    SPANS_SENT: Counter Count "gantry_runner_trace_spans_sent_total";
    /// Spans of traces that were dropped, by reason: too many waited (full), or the collector did not take them (not_taken).
    SPANS_DROPPED: Counter Count "gantry_runner_trace_spans_dropped_total" [reason] &[SPAN_DROPS];
}
