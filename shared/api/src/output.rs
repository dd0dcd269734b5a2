//! The messages about the output of operations.

use serde::{Deserialize, Serialize};
use shared_types::OperationId;

messages! {
    /// A piece of an operation's output.
    pub struct Output {
        /// The operation.
        pub operation: OperationId,
        /// `stdout` or `stderr`.
        #[cfg_attr(feature = "openapi", schema(value_type = StreamName))]
        pub stream: String,
        /// The offset of the first byte in the stream, from 0. It is larger than the requested offset where the bytes
        /// between them are no longer stored.
        pub base: u64,
        /// The number of bytes. 0 means that the stream has no more bytes yet or, once `ended` is true, ever.
        pub bytes: u64,
        /// The bytes in base64.
        pub data: String,
        /// The end of the stream as far as the server knows it.
        pub end: u64,
        /// True if the operation has ended, so that the stream grows no more.
        pub ended: bool,
    }
}

/// An output stream of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum StreamName {
    /// Standard output. It includes standard error where the two are merged, and in a terminal.
    Stdout,
    /// Standard error.
    Stderr,
}
