//! The errors of the API.

use serde::{Deserialize, Serialize};

messages! {
    /// An error (RFC 9457, `application/problem+json`).
    pub struct Problem {
        /// The address of the server's page about this code, such as `/problems/not_found`.
        #[serde(rename = "type", default)]
        #[cfg_attr(feature = "openapi", schema(required))]
        pub page: String,
        /// A stable word for programs, such as `not_found`.
        pub code: String,
        /// The HTTP status.
        pub status: u16,
        /// The cause and the remedy, for people.
        pub detail: String,
    }
}

impl Problem {
    /// Makes the problem with this code.
    pub fn new(code: &str, status: u16, detail: impl Into<String>) -> Self {
        Self {
            page: format!("/problems/{code}"),
            code: code.to_owned(),
            status,
            detail: detail.into(),
        }
    }
}
