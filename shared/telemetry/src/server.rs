//! The metrics of the server, all of them. `docs/metrics.md` is made from this list.

use crate::{
    metrics::{OTHER, list},
    words::{FILE_ENDS, RUN_ENDS, SPAN_DROPS, UNKNOWN_ENDS},
};

/// The door of a request.
const SURFACES: &[&str] = &["rest", "grpc", "ws"];

/// The outcome of a request: the server did it, had reason not to, or failed.
const OUTCOMES: &[&str] = &["ok", "refused", "failed"];

/// The outcome of a model call.
const MODEL_OUTCOMES: &[&str] = &[
    "ok",
    "unauthenticated",
    "quota_exhausted",
    "overflow",
    "refused",
    "rate_limited",
    "unavailable",
    "broken",
    "timed_out",
    "cancelled",
];

/// The providers of models: those of the catalogue that is part of the program. A test of server-llm compares them.
pub const MODEL_PROVIDERS: &[&str] = &[
    "anthropic",
    "openai",
    "gemini",
    "openrouter",
    "deepseek",
    "groq",
    "mistral",
    "moonshot",
    "dashscope",
    "minimax",
    "zhipu",
    "zai",
    "nvidia",
    "xai",
    "ollama",
    "vllm",
    "lmstudio",
    OTHER,
];

/// The tools that the model may ask for, in small letters.
const TOOLS: &[&str] = &[
    "shell",
    "read",
    "write",
    "edit",
    "list",
    "glob",
    "grep",
    "task_status",
    "task_read",
    "task_kill",
    "recall",
    "context_edit",
    "chat_history",
    "todo_write",
    "todo_list",
    "web_fetch",
    "web_search",
    "create_chat",
    "ask_user",
    "present_plan",
    "subagent",
    "sendmessage",
    "search_tools",
    "use_tool",
    OTHER,
];

const CALL_OUTCOMES: &[&str] = &[
    "completed",
    "failed",
    "refused",
    "timed_out",
    "cancelled",
    "unknown",
    "background",
];

const TURN_OUTCOMES: &[&str] = &["completed", "failed", "cancelled", "interrupted"];

/// The reason why the database was of no use.
const STORE_FAILURES: &[&str] = &["timeout", "io", "closed", "database", "unreadable", OTHER];

/// The way that a hint goes.
const HINT_DIRECTIONS: &[&str] = &["sent", "received"];

/// The way that another server went: it said so, or did not renew its lease.
const REPLICA_ENDS: &[&str] = &["gone", "silent"];

/// The reason why a link ended.
const LINK_ENDS: &[&str] = &[
    "closed",
    "goodbye",
    "left",
    "silent",
    "replaced",
    "revoked",
    "locked",
    "shutdown",
    "drained",
    "rotated",
    "aged",
    "went_back",
    "violation",
    "failed",
];

/// The reason why a runner is not enrolled.
const ENROLMENT_REFUSALS: &[&str] = &[
    "no_token",
    "foreign_token",
    "unknown_token",
    "spent_token",
    "expired_token",
    "too_many",
    "address_out_of_range",
    "bad_signature",
    "not_sealed",
    "not_opened",
    "unsound_key",
    "old_challenge",
    "another_name",
    "name_taken",
    "key_taken",
    "invalid_request",
];

/// The reason why a runner gets no access token.
const AUTHENTICATION_REFUSALS: &[&str] = &[
    "unknown_runner",
    "removed_runner",
    "locked_runner",
    "bad_signature",
    "old_challenge",
    "late_request",
    "join_state_never_given",
    "invalid_request",
];

list! {
    /// Requests that were answered, by door and outcome: ok, refused (a status of 400 to 499, or what gRPC calls the same) or failed. A stream counts once its answer begins.
    REQUESTS: Counter Count "gantry_requests_total" [surface, outcome] &[SURFACES, OUTCOMES];
    /// The time until the answer to a request began, in seconds. Requests for output that wait for it (wait_ms), and input, which waits for room, are left out.
    REQUEST_DURATION: Histogram Seconds "gantry_request_duration_seconds" [surface] &[SURFACES];

    /// Reloads of the settings, by outcome: done, or refused, which leaves all settings as they were.
    RELOADS: Counter Count "gantry_reloads_total" [outcome] &[&["done", "refused"]];

    /// Model calls, with all their attempts, by provider and outcome. A call whose turn was stopped is cancelled. The provider is other for the practice model, and for one that only the operator's settings name.
    MODEL_REQUESTS: Counter Count "gantry_model_requests_total" [provider, outcome] &[MODEL_PROVIDERS, MODEL_OUTCOMES];
    /// The time until the whole answer of a model was there, with all attempts, in seconds.
    MODEL_REQUEST_DURATION: Histogram Seconds "gantry_model_request_duration_seconds" [provider] &[MODEL_PROVIDERS];
    /// Attempts at a model call that came after the first one.
    MODEL_RETRIES: Counter Count "gantry_model_retries_total" [provider] &[MODEL_PROVIDERS];
    /// Tokens that models said they read (input) and wrote (output). Models that do not say count as 0.
    MODEL_TOKENS: Counter Count "gantry_model_tokens_total" [provider, direction] &[MODEL_PROVIDERS, &["input", "output"]];
    /// Tokens of the input that the vendor had cached.
    MODEL_CACHED_TOKENS: Counter Count "gantry_model_cached_tokens_total" [provider] &[MODEL_PROVIDERS];

    /// Turns that ended, by outcome.
    TURNS_ENDED: Counter Count "gantry_turns_ended_total" [outcome] &[TURN_OUTCOMES];
    /// Turns that this server process works on now.
    TURNS_RUNNING: Gauge Count "gantry_turns_running";
    /// Turns of all servers that wait for a worker now, as the database has it.
    TURNS_QUEUED: Gauge Count "gantry_turns_queued";
    /// How long the oldest of the turns that wait for a worker has waited, in seconds; 0 without one.
    TURNS_OLDEST_QUEUED: Gauge Seconds "gantry_turns_oldest_queued_age_seconds";
    /// Tool calls that ended, by tool and outcome.
    TOOL_CALLS: Counter Count "gantry_tool_calls_total" [tool, outcome] &[TOOLS, CALL_OUTCOMES];

    /// Operations whose end was stored, by kind of request and cause.
    OPERATIONS_ENDED: Counter Count "gantry_operations_ended_total" [kind, cause] RUN_ENDS, FILE_ENDS, UNKNOWN_ENDS;
    /// The time from when an operation was placed until its runner had accepted it, in seconds. Operations that were sent again over a later link are not among them.
    OPERATION_START_DURATION: Histogram Seconds "gantry_operation_start_duration_seconds";
    /// Operations of all servers without an end now, as the database has it.
    OPERATIONS_OPEN: Gauge Count "gantry_operations_open";
    /// Open operations whose runner is offline now: what became of them is not known yet.
    OPERATIONS_UNKNOWN: Gauge Count "gantry_operations_unknown";
    /// Operations that are lost: what they did will never be known.
    OPERATIONS_LOST: Counter Count "gantry_operations_lost_total";
    /// Operations that changed something, and of which a runner told another end than the stored one. This must stay 0.
    DUPLICATE_EFFECTS: Counter Count "gantry_duplicate_effects_total";
    /// Bytes of operations' output that were stored.
    OUTPUT_BYTES: Counter Bytes "gantry_output_bytes_total";

    /// Runners of all tenants, by state: online, offline, or locked because a copy of its folder was used.
    RUNNERS: Gauge Count "gantry_runners" [state] &[&["online", "offline", "locked"]];
    /// Runners that are online, by whether their version is the server's.
    RUNNER_VERSIONS: Gauge Count "gantry_runners_by_version" [version] &[&["same", "other"]];
    /// Operations that run now on the runners that are linked to this server process, as those say themselves.
    FLEET_OPERATIONS_RUNNING: Gauge Count "gantry_fleet_operations_running";
    /// Output of commands that is kept on the disks of the runners that are linked to this server process until it has it, in bytes.
    FLEET_SPOOL_BYTES: Gauge Bytes "gantry_fleet_spool_bytes";
    /// Room on the disks of the runners that are linked to this server process, in bytes, all together.
    FLEET_DISK_FREE_BYTES: Gauge Bytes "gantry_fleet_disk_free_bytes";
    /// Runners that are linked to this server process and have less than 2 GiB of room on their disk; `gantry runners` shows which.
    FLEET_LOW_ON_DISK: Gauge Count "gantry_fleet_low_on_disk";
    /// Links of runners that this server process serves now.
    LINKS: Gauge Count "gantry_links";
    /// Links that ended, by reason. A runner that stays links again.
    LINKS_ENDED: Counter Count "gantry_links_ended_total" [reason] &[LINK_ENDS];
    /// Runners that were enrolled.
    ENROLMENTS: Counter Count "gantry_enrolments_total";
    /// What runners, and peers that claim to be one, were refused: an enrolment, an access token or a link.
    RUNNER_REFUSALS: Counter Count "gantry_runner_refusals_total" [request, reason]
        &[&["enrolment"], ENROLMENT_REFUSALS],
        &[&["authentication"], AUTHENTICATION_REFUSALS],
        &[&["link"], &["bad_signature"]],
        &[&[OTHER], &[OTHER]];

    /// Connections to the database, by whether they are in use. A file has one that writes, and some that read.
    STORE_CONNECTIONS: Gauge Count "gantry_store_connections" [state] &[&["in_use", "idle"]];
    /// The time from asking for a connection until a read was over, or a transaction was on disk, in seconds.
    STORE_TRANSACTION_DURATION: Histogram Seconds "gantry_store_transaction_duration_seconds" [access] &[&["read", "write"]];
    /// What the database could not do, by reason. A transaction that gave way to another one and was done again is none.
    STORE_ERRORS: Counter Count "gantry_store_errors_total" [reason] &[STORE_FAILURES];
    /// Servers that share the database and live, as far as this one knows, itself included.
    REPLICAS: Gauge Count "gantry_replicas";
    /// Other servers that ended, as this one saw it: their row was gone (gone), or this one removed it because their lease had run out (silent). Each server counts a row that is gone.
    REPLICAS_TAKEN_OVER: Counter Count "gantry_replicas_taken_over_total" [reason] &[REPLICA_ENDS];
    /// The time since this server last renewed its lease in the database, in seconds. After 10 s it may be held for dead; a file needs no lease.
    REPLICA_RENEWAL_AGE: Gauge Seconds "gantry_replica_renewal_age_seconds";
    /// 1 while the operator lets this server drain, else 0.
    REPLICA_DRAINS: Gauge Count "gantry_replica_drains";
    /// Hints between servers that share a database: sent here, or received from other servers. Those that are alike, and
    /// wait together, are one.
    HINTS: Counter Count "gantry_hints_total" [direction] &[HINT_DIRECTIONS];
    /// Notifications that carried hints between servers.
    HINT_BATCHES: Counter Count "gantry_hint_batches_total" [direction] &[HINT_DIRECTIONS];

    /// Spans of traces that the collector took.
    SPANS_SENT: Counter Count "gantry_trace_spans_sent_total";
    /// Spans of traces that were dropped, by reason: too many waited (full), or the collector did not take them (not_taken).
    SPANS_DROPPED: Counter Count "gantry_trace_spans_dropped_total" [reason] &[SPAN_DROPS];
}
