//! Work that goes on although its caller stops waiting for it.
//!
//! A door drops the future of a request whose client leaves. The work of a use case after its
//! commit (wake a worker, end a link) must happen all the same. The commit itself is not undone,
//! and no other task would do the rest until the next start.

use tracing::Instrument as _;

use crate::AppError;

/// Does the work in a task of its own and waits for it; dropping this leaves the work running.
///
/// # Errors
/// Those of the work; [`AppError::Unavailable`] if it panics.
pub(crate) async fn shielded<T: Send + 'static>(
    work: impl Future<Output = Result<T, AppError>> + Send + 'static,
) -> Result<T, AppError> {
    let done = tokio::spawn(work.in_current_span()).await;
    done.unwrap_or_else(|error| Err(AppError::unavailable(error)))
}
