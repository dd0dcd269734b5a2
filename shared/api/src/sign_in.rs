//! The messages about signing in.

use serde::{Deserialize, Serialize};
use shared_types::Timestamp;

use crate::User;

messages! {
    /// Exchanges a one-time code for a token.
    #[serde(deny_unknown_fields)]
    pub struct SignIn {
        /// The code, from an invitation or from the server's operator.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 4096))]
        pub code: String,
        /// The name of the token in lists, such as the terminal's host name.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 63, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
        pub device: String,
    }

    /// A person is signed in.
    pub struct SignedIn {
        /// The bearer token; shown once.
        pub token: String,
        /// The person.
        pub user: User,
    }

    /// The answer to a sign-in from a browser, whose token is a cookie.
    pub struct BrowserSignedIn {
        /// The person.
        pub user: User,
        /// The time at which the sign-in ends, even if it is in use. It also ends after 12 hours without a request.
        pub expires_at: Timestamp,
    }
}
