//! The bounds that more than one crate must agree on. A bound that only one place needs lives there.

use std::time::Duration;

/// Largest protobuf frame on a link, in bytes; a larger one closes the link.
pub const MAX_FRAME_BYTES: usize = 2 * 1024 * 1024;

/// Largest first frame on a link, in bytes. It is small because the peer is not authenticated yet.
pub const MAX_HELLO_BYTES: usize = 64 * 1024;

/// Longest wait of a new link for its first frame.
pub const HELLO_WITHIN: Duration = Duration::from_secs(10);

/// Output bytes that may be in flight per stream before the reader grants more credit.
pub const CREDIT_WINDOW_BYTES: u64 = 1024 * 1024;

/// Input bytes of one operation that may be on their way before the runner has taken them.
pub const INPUT_WINDOW_BYTES: u64 = 1024 * 1024;

/// Largest piece of input in one frame, in bytes.
pub const INPUT_CHUNK_BYTES: usize = 64 * 1024;

/// Resizes and signals of one operation that may wait for their answers.
pub const MAX_CONTROLS_WAITING: usize = 16;

/// Largest body of a request to a runner's model server, in bytes.
pub const MODEL_BODY_BYTES: usize = 32 * 1024 * 1024;

/// Largest piece of such a body, or of its answer, in one frame, in bytes.
pub const MODEL_PIECE_BYTES: usize = 64 * 1024;

/// Bytes of an answer of a runner's model server that may be on their way before the server grants more.
pub const MODEL_WINDOW_BYTES: u64 = 256 * 1024;

/// Most models of a runner's model server that are reported.
pub const MAX_RUNNER_MODELS: usize = 128;

/// Longest name of such a model, in bytes.
pub const MAX_RUNNER_MODEL_BYTES: usize = 128;

/// Largest file that is sent either way, in bytes.
pub const MAX_TRANSFER_BYTES: u64 = 64 * 1024 * 1024 * 1024;

/// Largest archive that many entries of a directory are sent in at once, in bytes.
pub const MAX_ARCHIVE_BYTES: u64 = 16 * 1024 * 1024;

/// Most entries in one such archive.
pub const MAX_ARCHIVE_ENTRIES: usize = 1024;

/// Largest piece of output in one frame, in bytes.
pub const OUTPUT_CHUNK_BYTES: usize = 64 * 1024;

/// Output kept of a stream's tail with bounded retention, in bytes, where a runner has no room for
/// all of it.
pub const RETAINED_TAIL_BYTES: usize = 1024 * 1024;

/// Output of one stream that a runner keeps on disk until the server has committed it, in bytes.
/// With as many commands as may run at once this is one gibibyte for each runner.
pub const SPOOL_BYTES_PER_STREAM: u64 = 8 * 1024 * 1024;

/// Largest offset, size, count or time in a frame of a runner. Numbers in JSON are exact up to
/// here, the database keeps them, and no file or stream of a host is larger.
pub const MAX_NUMBER: u64 = (1 << 53) - 1;

/// Longest time that a refusal of a runner can ask to wait, in milliseconds: a day.
pub const MAX_RETRY_AFTER_MS: u64 = 24 * 60 * 60 * 1000;

/// Longest shell command or single argument, in bytes. Linux refuses a single argument of
/// 128 KiB and more (`MAX_ARG_STRLEN`), so a longer one could never run.
pub const MAX_COMMAND_BYTES: usize = 128 * 1024 - 1;

/// Largest content of a file read, written or edited in one operation, in bytes.
pub const MAX_INLINE_FILE_BYTES: usize = 1024 * 1024;

/// Longest path in a request, in bytes (`PATH_MAX`).
pub const MAX_PATH_BYTES: usize = 4096;

/// Longest text that a peer may say of itself, of a refusal or of a failure, in characters; more of
/// it is cut off. It goes to logs, lists and terminals as one line.
pub const MAX_PEER_TEXT: usize = 1024;

/// Longest message that a user may send, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024;

/// Largest image of a session, in bytes.
pub const MAX_IMAGE_BYTES: usize = 5 * 1024 * 1024;

/// Most images of a message.
pub const MAX_IMAGES_OF_MESSAGE: usize = 20;

/// Longest client id (idempotency key) of a message, in bytes.
pub const MAX_CLIENT_ID_BYTES: usize = 128;

/// Largest body of a REST request and of a WebSocket message, in bytes.
pub const MAX_API_BODY_BYTES: usize = 512 * 1024;

/// Largest archive with a runner's programs that a server hands out and a runner takes, in bytes.
pub const MAX_RUNNER_ARCHIVE_BYTES: u64 = 256 * 1024 * 1024;

/// Longest name of a runner, user or key, in bytes.
pub const MAX_NAME_BYTES: usize = 63;

/// Most model calls that a turn may be allowed.
pub const MAX_STEPS: u32 = 500;

/// Model calls of a turn where no one has set how many.
pub const USUAL_STEPS: u32 = 50;

/// Longest name of a language, in characters.
pub const MAX_LANGUAGE_LETTERS: usize = 40;

/// Most events that one page of a session's log carries.
pub const MAX_EVENTS_PAGE: u32 = 500;

/// Time between the heartbeats that each end of a link sends.
pub const HEARTBEAT_EVERY: Duration = Duration::from_secs(10);

/// After this long without a frame the runner opens a new link.
pub const LINK_SILENCE: Duration = Duration::from_secs(30);

/// After this long without a frame the server holds the runner for offline.
pub const LINK_LEASE: Duration = Duration::from_secs(45);

/// Longest wait of a call for a runner that has no link but was heard of within its lease. The
/// runner's first attempts to open a new link take less.
pub const AWAY_AT_MOST: Duration = Duration::from_secs(10);

/// Longest time that commands may go on while their runner is cut off from the server.
pub const DISCONNECTED_AT_MOST: Duration = Duration::from_secs(15 * 60);

/// Between the polite signal and the kill of a process group.
pub const KILL_GRACE: Duration = Duration::from_secs(10);

/// Longest time that a command may run, also in the background.
pub const COMMAND_RUNS_AT_MOST: Duration = Duration::from_secs(24 * 60 * 60);

/// Longest wait of a turn for a runner that is gone while one of the turn's operations may still
/// run.
pub const PARKED_AT_MOST: Duration = Duration::from_secs(15 * 60);

/// Longest wait of a turn that keeps its worker. Where the turn may have to wait longer, the worker
/// lets go of the turn.
pub const PARKS_AFTER: Duration = Duration::from_secs(10);

/// Time for a file operation.
pub const FILE_OPERATION_WITHIN: Duration = Duration::from_secs(30);

/// Tells if `name` is a valid name of a runner. The rule is that for labels in DNS and Kubernetes,
/// so that a name can be used there unchanged.
pub fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let inner = |byte: &u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b'_')
    };
    let edge = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    bytes.len() <= MAX_NAME_BYTES
        && bytes.iter().all(inner)
        && edge(bytes.first())
        && edge(bytes.last())
}

/// From this ordinal on, an operation of a step is one of a hook and none of a call of the model's answer.
pub const HOOK_ORDINALS: u32 = 1 << 20;

/// The ordinals of the operations that make and settle the worktree of an agent. No hook has them.
pub const WORKTREE_ORDINALS: [u32; 2] = [HOOK_ORDINALS * 2, HOOK_ORDINALS * 2 + 1];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_label_that_dns_would_take() {
        assert!(
            ["a", "laptop", "build-7.eu", "x_1"]
                .into_iter()
                .all(is_name)
        );
        assert!(
            ["", "-a", "a-", "Laptop", "a b", "ä", &"a".repeat(64)]
                .into_iter()
                .all(|name| !is_name(name))
        );
    }
}
