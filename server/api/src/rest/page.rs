//! The pages of a list: every list takes `limit` and `after`, and answers with `next` if another page follows.

use std::fmt::Display;

use axum::extract::{Query, rejection::QueryRejection};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use server_app::{AppError, Page};

use crate::words;

/// Most things on one page of any list.
pub(super) const MAX_PAGE: u32 = 500;

/// Longest text that a list is searched for, in bytes.
const MAX_SEARCH_BYTES: usize = 256;

/// Longest cursor that is read, in bytes.
const MAX_CURSOR_BYTES: usize = 1024;

/// The query of a list without other choices.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageQuery {
    /// At most this many, from 1 to 500.
    #[serde(default = "usual")]
    #[param(minimum = 1, maximum = 500)]
    limit: u32,
    /// The value of `next` of the page before.
    #[serde(default)]
    #[param(max_length = 1024)]
    after: Option<String>,
}

/// The page of this list that is asked for.
///
/// # Errors
/// Fails if the query cannot be read, the limit is out of bounds, or the cursor belongs to another list.
pub(super) fn asked<T: DeserializeOwned>(
    list: &str,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Page<T>, AppError> {
    let Query(query) = query.map_err(words::of_query)?;
    Ok(Page {
        limit: limit(query.limit)?,
        after: place(list, query.after.as_deref())?,
    })
}

/// Checks the text that a list is searched for.
///
/// # Errors
/// Fails if it is longer than [`MAX_SEARCH_BYTES`].
pub(super) fn search(text: &str) -> Result<(), AppError> {
    match text.len() <= MAX_SEARCH_BYTES {
        true => Ok(()),
        false => Err(AppError::Invalid(format!(
            "search has {} bytes; {MAX_SEARCH_BYTES} are allowed",
            text.len()
        ))),
    }
}

/// Things on a page where the request does not say how many.
pub(super) fn usual() -> u32 {
    100
}

/// Checks the requested length of a page.
///
/// # Errors
/// Fails if it is not from 1 to [`MAX_PAGE`].
pub(super) fn limit(limit: u32) -> Result<u32, AppError> {
    within(limit, MAX_PAGE)
}

/// The requested limit. A limit above the most is refused, because a shorter page than requested looks like the end.
///
/// # Errors
/// Fails if it is not from 1 to `at_most`.
pub(super) fn within<N: PartialOrd + From<u8> + Display>(
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

/// The cursor for this place in the list, which clients send back.
pub(super) fn cursor<T: Serialize>(list: &str, place: &T) -> Option<String> {
    let json = serde_json::to_vec(&(list, place)).ok()?;
    Some(URL_SAFE_NO_PAD.encode(json))
}

/// The place that a cursor of this list names; `None` without a cursor.
///
/// # Errors
/// Fails if it is no cursor of this list.
pub(super) fn place<T: DeserializeOwned>(
    list: &str,
    cursor: Option<&str>,
) -> Result<Option<T>, AppError> {
    let Some(cursor) = cursor else {
        return Ok(None);
    };
    let json = (cursor.len() <= MAX_CURSOR_BYTES).then(|| URL_SAFE_NO_PAD.decode(cursor));
    let read = json.and_then(|json| serde_json::from_slice::<(String, T)>(&json.ok()?).ok());
    match read {
        Some((of, place)) if of == list => Ok(Some(place)),
        _ => Err(AppError::Invalid(format!(
            "after is no cursor of the list of {list}: pass the next of the page before, as it is"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_place_in_its_own_list_alone() {
        let at = cursor("runners", &"laptop").expect("it is text");
        let read = |list, cursor: &str| place::<String>(list, Some(cursor)).ok();
        assert_eq!(read("runners", &at), Some(Some("laptop".to_owned())));
        for (list, cursor) in [
            ("people", at.as_str()),
            ("runners", ""),
            ("runners", "laptop"),
            ("runners", "WyJydW5uZXJzIiwxXQ"),
            ("runners", &"A".repeat(10_000)),
        ] {
            assert_eq!(read(list, cursor), None, "{cursor:.40}");
        }
        assert!(place::<String>("runners", None).is_ok_and(|place| place.is_none()));
    }
}
