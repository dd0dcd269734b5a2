//! How much of a list one request may ask for.

use std::fmt::Display;

use server_app::AppError;

/// The limit that was asked for. More than may be had is refused, because an answer that is shorter
/// than what was asked for looks like the end of the list.
///
/// # Errors
/// If it is not from 1 to `at_most`.
pub(super) fn page<N: PartialOrd + From<u8> + Display>(
    limit: N,
    at_most: N,
) -> Result<N, AppError> {
    match limit >= N::from(1) && limit <= at_most {
        true => Ok(limit),
        false => Err(AppError::Invalid(format!(
            "limit is {limit}; ask for 1 to {at_most} at once, and for what follows with another request"
        ))),
    }
}
