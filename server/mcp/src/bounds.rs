//! The limits of what a tool server may send.

use std::time::Duration;

/// Longest message of a server, in bytes. A server that sends a longer one is cut off.
pub const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// Most tools of a server; those behind are not offered.
pub const MAX_TOOLS: usize = 256;

/// Most pages of a list.
pub(crate) const MAX_PAGES: usize = 64;

/// Longest description of a tool, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 2048;

/// Longest name of a tool, as its server says it, in bytes.
pub(crate) const MAX_TOOL_NAME_BYTES: usize = 256;

/// Largest schema of a tool's arguments, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;

/// Most schemas within one another.
pub const MAX_SCHEMA_LEVELS: usize = 10;

/// Deepest JSON within a schema, whatever its words mean.
pub(crate) const MAX_JSON_LEVELS: usize = 40;

/// The time in which a server has to be ready, unless its declaration says another. A program may be fetched first.
pub const START_USUALLY: Duration = Duration::from_secs(60);

/// The most time in which a server has to be ready.
pub const START_AT_MOST: Duration = Duration::from_secs(10 * 60);

/// The time for a page of a list.
pub(crate) const PAGE_WITHIN: Duration = Duration::from_secs(10);

/// The time in which a server answers the question for its era. One that does not is asked in the way of the earlier era
/// as well.
pub(crate) const PROBE_WITHIN: Duration = Duration::from_secs(3);

/// The time of a call that names no other.
pub const CALL_USUALLY: Duration = Duration::from_secs(60);

/// The most time of a call.
pub const CALL_AT_MOST: Duration = Duration::from_secs(10 * 60);

/// Most lines of a program's output that are no messages; with one more it is cut off.
pub(crate) const MAX_STRAY_LINES: usize = 200;

/// Most rounds in which a server asks for input before it answers one request.
pub(crate) const MAX_ROUNDS: usize = 8;

/// Most questions to a person in one round.
pub(crate) const MAX_QUESTIONS: usize = 8;

/// Most times that a stream that broke off is taken up again.
pub(crate) const MAX_RESUMES: usize = 8;

/// The longest pause before that, however long the server wants it.
pub(crate) const RESUME_AT_MOST: Duration = Duration::from_secs(30);

/// The shortest pause before a stream outside of any answer is taken up again.
pub(crate) const RESUME_AT_LEAST: Duration = Duration::from_millis(100);

/// The pause before that where the server says none.
pub(crate) const RESUME_USUALLY: Duration = Duration::from_secs(1);

/// Longest word of a server that is sent back to it (its session, a cursor, its state), in bytes.
pub(crate) const MAX_TOKEN_BYTES: usize = 64 * 1024;
