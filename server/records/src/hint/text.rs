//! The text form of hints: the version of the form, the sender, and one word for each hint.
//!
//! `1 rep_… session/ten_…/ses_… waits rights/ten_… list/ten_…/sessions/ses_…/prompt`. An absent tenant, and everyone, is
//! `*`. Releases of a rolling update read one another's texts: a form of another version means [`Hint::All`]. A word
//! that is not known is left out: this release has nothing that would look.

use std::{collections::BTreeSet, str::FromStr};

use shared_types::{ReplicaId, TenantId, Topic};

use super::{Hint, HintBatch};
use crate::{Change, Pace, SessionKey, Whose};

/// The longest text, in bytes. PostgreSQL refuses 8,000.
pub const MAX_HINT_TEXT_BYTES: usize = 7_900;

const VERSION: &str = "1";

/// Stands for any.
const ANY: &str = "*";

impl HintBatch {
    /// The texts that carry the batch, each of at most [`MAX_HINT_TEXT_BYTES`].
    pub fn texts(&self) -> Vec<String> {
        let from = self
            .from
            .map_or_else(|| ANY.to_owned(), |id| id.to_string());
        let beginning = format!("{VERSION} {from}");
        let mut texts: Vec<String> = Vec::new();
        for hint in &self.hints {
            let word = word(hint);
            match texts.last_mut() {
                Some(text) if text.len() + 1 + word.len() <= MAX_HINT_TEXT_BYTES => {
                    text.push(' ');
                    text.push_str(&word);
                }
                _ => texts.push(format!("{beginning} {word}")),
            }
        }
        texts
    }

    /// The batch of a text, whichever release wrote it.
    pub fn read(text: &str) -> Self {
        let mut words = text.split(' ');
        if words.next() != Some(VERSION) {
            return Self {
                from: None,
                hints: BTreeSet::from([Hint::All]),
            };
        }
        Self {
            from: words.next().and_then(|from| from.parse().ok()),
            hints: words.filter_map(read_word).collect(),
        }
    }

    /// True if this replica has sent it.
    pub fn is_from(&self, replica: ReplicaId) -> bool {
        self.from == Some(replica)
    }
}

fn word(hint: &Hint) -> String {
    match hint {
        Hint::All => "all".to_owned(),
        Hint::Session(SessionKey { tenant, session }) => format!("session/{tenant}/{session}"),
        Hint::Waits => "waits".to_owned(),
        Hint::Link(runner) => format!("link/{runner}"),
        Hint::Cancels => "cancels".to_owned(),
        Hint::Turn(SessionKey { tenant, session }) => format!("turn/{tenant}/{session}"),
        Hint::Replicas => "replicas".to_owned(),
        Hint::Rights(tenant) => format!("rights/{}", any(*tenant)),
        Hint::List(Change {
            tenant,
            topic,
            whose,
            pace,
        }) => {
            let pace = match pace {
                Pace::Prompt => "prompt",
                Pace::Slow => "slow",
            };
            let (tenant, topic) = (any(*tenant), topic_word(*topic));
            format!("list/{tenant}/{topic}/{}/{pace}", whose_word(*whose))
        }
    }
}

fn read_word(word: &str) -> Option<Hint> {
    let parts: Vec<_> = word.split('/').collect();
    match parts[..] {
        ["all"] => Some(Hint::All),
        ["session", tenant, session] => Some(Hint::Session(SessionKey {
            tenant: tenant.parse().ok()?,
            session: session.parse().ok()?,
        })),
        ["waits"] => Some(Hint::Waits),
        ["link", runner] => Some(Hint::Link(runner.parse().ok()?)),
        ["cancels"] => Some(Hint::Cancels),
        ["turn", tenant, session] => Some(Hint::Turn(SessionKey {
            tenant: tenant.parse().ok()?,
            session: session.parse().ok()?,
        })),
        ["replicas"] => Some(Hint::Replicas),
        ["rights", tenant] => Some(Hint::Rights(read_any(tenant)?)),
        ["list", tenant, topic, whose, pace] => Some(Hint::List(Change {
            tenant: read_any(tenant)?,
            topic: read_topic(topic)?,
            whose: read_whose(whose),
            pace: match pace {
                "slow" => Pace::Slow,
                _ => Pace::Prompt,
            },
        })),
        _ => None,
    }
}

fn any(tenant: Option<TenantId>) -> String {
    tenant.map_or_else(|| ANY.to_owned(), |tenant| tenant.to_string())
}

fn read_any(tenant: &str) -> Option<Option<TenantId>> {
    match tenant {
        ANY => Some(None),
        tenant => tenant.parse().ok().map(Some),
    }
}

fn whose_word(whose: Whose) -> String {
    match whose {
        Whose::Everyone => ANY.to_owned(),
        Whose::User(id) => id.to_string(),
        Whose::OfSession(id) => id.to_string(),
        Whose::OfOperation(id) => id.to_string(),
        Whose::OfCredential(id) => id.to_string(),
    }
}

/// The prefix of an id tells its kind. Everyone hears of a kind that is not known.
fn read_whose(word: &str) -> Whose {
    fn id<I: FromStr>(word: &str, whose: impl FnOnce(I) -> Whose) -> Option<Whose> {
        word.parse().ok().map(whose)
    }
    id(word, Whose::User)
        .or_else(|| id(word, Whose::OfSession))
        .or_else(|| id(word, Whose::OfOperation))
        .or_else(|| id(word, Whose::OfCredential))
        .unwrap_or(Whose::Everyone)
}

fn topic_word(topic: Topic) -> &'static str {
    match topic {
        Topic::Sessions => "sessions",
        Topic::Approvals => "approvals",
        Topic::Runners => "runners",
        Topic::JoinTokens => "join_tokens",
        Topic::Sandboxes => "sandboxes",
        Topic::Operations => "operations",
        Topic::Settings => "settings",
        Topic::Models => "models",
        Topic::People => "people",
        Topic::Keys => "keys",
        Topic::Permissions => "permissions",
    }
}

fn read_topic(word: &str) -> Option<Topic> {
    Topic::ALL
        .into_iter()
        .find(|topic| topic_word(*topic) == word)
}

#[cfg(test)]
mod tests;
