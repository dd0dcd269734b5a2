//! The lists that people read, by the tables and columns from which they are made.
//!
//! A statement that changes rows is taken apart into the tables that it writes. Each table has a line here, which a test
//! compares with the database's catalog. So no method that writes has to tell, and none can forget to.

use server_records::Pace::{self, Prompt, Slow};
use shared_types::Topic;

/// A table that a statement writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written<'s> {
    pub(super) table: &'s str,
    /// The first column of an `UPDATE`.
    pub(super) column: Option<&'s str>,
}

/// A list that is made from the rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct List {
    pub(super) topic: Topic,
    pub(super) readers: Readers,
    pub(super) pace: Pace,
}

/// How the people are found whose list it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    /// Everyone of the tenant. The REST answer is what the rights decide, so a hint too many costs a request.
    Everyone,
    /// Those of the sessions that the transaction names.
    OfSessions,
    /// Those of the operations that the statement names.
    OfOperations,
    /// That of the credential that the statement names.
    OfCredential,
    /// The person, or the person of the session, that the statement names behind the tenant; else everyone.
    OfSubject,
}

/// The lists that are made from what was written; `None` where nobody has thought of the table.
pub(super) fn lists(written: Written<'_>) -> Option<&'static [List]> {
    use Readers::{Everyone, OfCredential, OfOperations, OfSessions, OfSubject};
    use Topic as T;
    macro_rules! lists {
        ($($topic:ident of $readers:ident, $pace:ident);*) => {
            Some(const { &[$(List { topic: T::$topic, readers: $readers, pace: $pace }),*] })
        };
    }
    match (written.table, written.column) {
        // Every event moves the time of last use.
        ("sessions", Some("last_seq")) => lists!(Sessions of OfSessions, Slow),
        ("sessions", Some("pinned_runner_id")) => {
            lists!(Sessions of OfSessions, Prompt; Settings of OfSubject, Prompt)
        }
        ("sessions" | "session_links", _) | ("turns", None | Some("state")) => {
            lists!(Sessions of OfSessions, Prompt)
        }
        // A list of sessions shows which turn runs, and no more of it.
        ("turns", Some(_)) => lists!(),
        ("approvals", _) => lists!(Approvals of OfSessions, Prompt),
        ("operations", _) => lists!(Operations of OfOperations, Prompt),
        ("runners", Some("last_seen_at")) => lists!(Runners of Everyone, Slow),
        // Sandboxes and offered models are there as long as their runner is.
        ("runners", _) => {
            lists!(Runners of Everyone, Prompt; Sandboxes of Everyone, Prompt; Models of Everyone, Prompt)
        }
        ("runner_shares", _) => lists!(Runners of Everyone, Prompt; Models of Everyone, Prompt),
        ("sandboxes", _) => lists!(Sandboxes of Everyone, Prompt; Runners of Everyone, Prompt),
        ("join_tokens", _) => lists!(JoinTokens of Everyone, Prompt),
        ("settings", _) => lists!(Settings of OfSubject, Prompt),
        ("users", Some("active_runner_id")) => {
            lists!(Settings of OfSubject, Prompt; Runners of OfSubject, Prompt)
        }
        ("users" | "sign_in_codes", _) => lists!(People of Everyone, Prompt),
        ("credentials", Some("last_used_at")) => {
            lists!(Keys of OfCredential, Slow; People of Everyone, Slow)
        }
        // The secrets of a browser's sign-in change with its use.
        ("credentials", Some("second_hash" | "taken_up_at")) => lists!(),
        ("credentials", _) => lists!(Keys of Everyone, Prompt; People of Everyone, Prompt),
        ("tool_grants", Some("renewing_until")) => lists!(),
        (
            "permission_rules" | "trusted_files" | "extensions" | "trusted_extensions"
            | "tool_grants" | "tool_values",
            _,
        ) => {
            lists!(Permissions of Everyone, Prompt)
        }
        ("model_accounts", _) => lists!(Models of Everyone, Prompt),
        // What is behind other lists, or what no list shows.
        (
            "attempts" | "audit" | "chat_texts" | "data_keys" | "duties" | "events" | "model_calls"
            | "output_frames" | "outputs" | "rates" | "replicas" | "request_keys" | "secrets"
            | "session_images" | "session_texts" | "steers" | "stream_tickets" | "tenants"
            | "todo_lists" | "tool_sign_ins" | "turn_waits",
            _,
        ) => lists!(),
        _ => None,
    }
}

/// True if someone's rights may be fewer afterwards. What lasts longer than a request asks for them again then.
pub(super) fn changes_rights(written: Written<'_>) -> bool {
    matches!(
        (written.table, written.column),
        ("credentials", Some("revoked_at"))
            | ("users", Some("removed_at" | "role"))
            | (
                "runners",
                Some("revoked_at" | "locked_at" | "owner_id" | "shared_with_everyone_at")
            )
            | ("runner_shares", _)
    )
}

/// True if it is known which lists are made from this table.
#[cfg(test)]
pub(crate) fn is_listed(table: &str) -> bool {
    let column = None;
    lists(Written { table, column }).is_some()
}

/// The tables that a statement writes, by its words.
pub(super) fn written(statement: &str) -> Vec<Written<'_>> {
    let mut words = statement.split_ascii_whitespace();
    let mut written = Vec::new();
    while let Some(word) = words.next() {
        let mut ahead = words.clone();
        let table = match (word, ahead.next()) {
            ("INSERT", Some("INTO")) | ("DELETE", Some("FROM")) => ahead.next(),
            ("UPDATE", table) => table,
            _ => continue,
        };
        let table = table.and_then(|table| table.split('(').next());
        let Some(table) = table.filter(|table| !table.is_empty()) else {
            continue;
        };
        let column = match word {
            // Neither `FOR UPDATE` nor `DO UPDATE SET` has a table behind it.
            "UPDATE" if ahead.next() != Some("SET") => continue,
            "UPDATE" => ahead.next(),
            _ => None,
        };
        written.push(Written { table, column });
    }
    written
}

#[cfg(test)]
mod tests;
