//! Every code that a problem of the API can have: one table, from which the answers, the pages at
//! `/problems/CODE` and docs/problems.md are made.

use axum::http::StatusCode;
use shared_api::Problem;

/// The description of a code.
pub(crate) struct About {
    /// The stable word for programs.
    pub(crate) word: &'static str,
    /// The status of its answers.
    pub(crate) status: StatusCode,
    /// The title, in a few words.
    pub(crate) title: &'static str,
    /// The cause.
    pub(crate) means: &'static str,
    /// The remedy.
    pub(crate) remedy: &'static str,
}

macro_rules! codes {
    ($($name:ident: $word:literal, $status:ident, $title:literal, $means:literal, $remedy:literal;)*) => {
        /// A code of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Code {
            $(#[doc = $title] $name,)*
        }

        impl Code {
            /// All codes, by status.
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];

            /// The description of this code.
            pub(crate) fn about(self) -> About {
                match self {
                    $(Self::$name => About {
                        word: $word,
                        status: StatusCode::$status,
                        title: $title,
                        means: $means,
                        remedy: $remedy,
                    },)*
                }
            }
        }
    };
}

codes! {
    BadRequest: "bad_request", BAD_REQUEST, "The request is not well formed",
        "The server cannot tell for which host the request is, or the request for a WebSocket lacks a header.",
        "Send exactly one Host header, and for a WebSocket the headers of RFC 6455.";
    Unauthenticated: "unauthenticated", UNAUTHORIZED, "The credential does not hold",
        "The request has no bearer token, or its token is wrong, revoked, expired, or not for your address. A sign-in code can be wrong, used or expired as well.",
        "Sign in again with gantry login, or use another key. gantry keys lists yours.";
    Forbidden: "forbidden", FORBIDDEN, "You may not do this",
        "Your role, or the scopes of your key, do not allow it. The detail names what it takes.",
        "Use a key with that scope, or ask an owner or admin for that role.";
    ForeignOrigin: "foreign_origin", FORBIDDEN, "A page of another site asks",
        "The request names a web page of another site as its origin. The server answers no such page.",
        "If the site is yours, add its name to names under [server] in gantry.toml and run gantry-server reload.";
    NotFound: "not_found", NOT_FOUND, "There is no such thing",
        "Nothing has this id, name or address, or it belongs to another person. The two are answered alike.",
        "Check the id. The lists show what is there for you. The OpenAPI document at /api/v1/openapi.json names all addresses.";
    MethodNotAllowed: "method_not_allowed", METHOD_NOT_ALLOWED, "The address takes another method",
        "There is such an address, but not for this HTTP method.",
        "Look the address up in /api/v1/openapi.json.";
    TooSlow: "too_slow", REQUEST_TIMEOUT, "The request did not come in time",
        "The body of the request did not come in time. Of a body that is read as it comes, a part may have been done.",
        "Look whether it was done, and try again if not. With an Idempotency-Key you can send it again at once.";
    Conflict: "conflict", CONFLICT, "It contradicts what is there",
        "What is asked cannot be done in the present state: a name is taken, a runner is offline, an operation has ended. The detail says which.",
        "Change what the detail names, and try again.";
    LimitReached: "limit_reached", CONFLICT, "There are as many as there may be",
        "A person, a session or the tenant has as many things of this kind as it may have. The detail names the limit and the use.",
        "Remove some, or have the operator raise the limit where the detail names a setting.";
    AnswerNotKept: "answer_not_kept", CONFLICT, "It was done, and its answer is not kept",
        "A request with the same Idempotency-Key was carried out. Its answer held a secret, which is given once and stored nowhere, or what it made was deleted since.",
        "If you have not got that answer, remove what was made, and ask again with another key.";
    UnderWay: "under_way", CONFLICT, "The same request is being carried out",
        "A request with the same Idempotency-Key came before, and has no answer yet.",
        "Ask again after as many seconds as the Retry-After header says.";
    OutcomeUnknown: "outcome_unknown", CONFLICT, "It may have been done",
        "The server was cut off or failed while it carried out a request with the same Idempotency-Key. It does not carry the request out again.",
        "Look whether it was done. If not, send the request with another key.";
    TooLarge: "too_large", PAYLOAD_TOO_LARGE, "The body is too large",
        "The body of the request has more bytes than the server takes.",
        "Send less at once. Input and files can be sent in pieces.";
    Misdirected: "misdirected", MISDIRECTED_REQUEST, "The server does not have this name",
        "The request names a host that the server does not know as its own. So no other site can make its name lead here.",
        "Use the server's address or localhost, or add the name to names under [server] in gantry.toml and run gantry-server reload.";
    Invalid: "invalid", UNPROCESSABLE_ENTITY, "The request makes no sense",
        "A field, a parameter or a header is missing, unknown, of another type, or out of its bounds. The detail names it.",
        "Send what /api/v1/openapi.json describes.";
    KeyReused: "key_reused", UNPROCESSABLE_ENTITY, "The Idempotency-Key is of another request",
        "Within the last 24 hours another request was sent with this Idempotency-Key: another address, or a body of other bytes.",
        "Send each request with a key of its own, and the same request byte for byte.";
    UpgradeRequired: "upgrade_required", UPGRADE_REQUIRED, "Another version of WebSocket is needed",
        "The client speaks a version of WebSocket that the server does not.",
        "Use version 13, which every present library speaks.";
    TooMany: "too_many", TOO_MANY_REQUESTS, "Too much in too short a time",
        "There were too many requests, or too many are open at once. Nothing was done.",
        "Wait as many seconds as the Retry-After header says, and try again.";
    Internal: "internal", INTERNAL_SERVER_ERROR, "The server has a fault",
        "The server met a state that its makers did not foresee. Its log has more.",
        "Tell the operator. What was asked may have been done: look before you try again.";
    Unavailable: "unavailable", SERVICE_UNAVAILABLE, "The server cannot do it now",
        "The database does not answer, or the server is stopping. Nothing was changed.",
        "Try again in a few seconds.";
    NotInTime: "not_in_time", SERVICE_UNAVAILABLE, "The server did not finish in time",
        "The server has the request, and did not finish it in time. What was asked may have been done.",
        "Look whether it was done, and try again if not. With an Idempotency-Key you can send it again at once.";
}

impl Code {
    /// The problem of this code.
    pub(crate) fn problem(self, detail: impl Into<String>) -> Problem {
        let About { word, status, .. } = self.about();
        Problem::new(word, status.as_u16(), detail)
    }

    /// The code that is written so.
    pub(crate) fn of(word: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|code| code.about().word == word)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fmt::Write as _};

    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/problems.md");

    fn written() -> String {
        let mut page = String::from(
            "# Problems\n\n\
             An answer that says no is `application/problem+json` (RFC 9457). Its `code` is a stable word for \
             programs, its `detail` a sentence for people, and its `type` the address of the page about the code on \
             the server itself, such as `/problems/not_found`. The codes are:\n",
        );
        for code in Code::ALL {
            let About {
                word,
                status,
                title,
                means,
                remedy,
            } = code.about();
            let status = status.as_u16();
            let written = write!(
                page,
                "\n## {word}\n\n{title} (status {status}). {means}\n\n**What to do:** {remedy}\n"
            );
            written.expect("a text takes it");
        }
        page.push_str(
            "\nThis page is made from `server/api/src/rest/problem/code.rs`: \
             `cargo test -p server-api the_page_is_written -- --ignored`.\n",
        );
        page
    }

    #[test]
    fn the_documentation_says_of_every_code_what_its_page_says() {
        let page = std::fs::read_to_string(PAGE).expect("docs/problems.md");
        assert_eq!(page, written());
    }

    #[test]
    #[ignore = "it writes docs/problems.md"]
    fn the_page_is_written() {
        std::fs::write(PAGE, written()).expect("docs/problems.md can be written");
    }

    #[test]
    fn every_code_has_a_word_of_its_own() {
        let words: BTreeSet<_> = Code::ALL.iter().map(|code| code.about().word).collect();
        assert_eq!(words.len(), Code::ALL.len());
        for code in Code::ALL {
            assert_eq!(Code::of(code.about().word), Some(*code));
            assert!(!code.about().status.is_success());
        }
    }
}
