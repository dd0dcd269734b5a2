//! The scopes of a credential: parts of what its user may do.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::columns::word;

/// One part of the rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// To talk with the agent.
    Chat,
    /// To add, share and remove runners.
    Runners,
    /// To run commands and copy files on runners.
    Exec,
    /// To look at sessions, operations, runners and settings, and to change nothing.
    Read,
    /// To read the server's metrics.
    Metrics,
    /// To manage keys, people and settings, and to read the audit log.
    Admin,
}

/// Some of the scopes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

impl Scope {
    /// Every scope, in the order in which lists show them.
    pub const ALL: [Self; 6] = [
        Self::Chat,
        Self::Runners,
        Self::Exec,
        Self::Read,
        Self::Metrics,
        Self::Admin,
    ];

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Scopes {
    /// All of them: the rights of a person who signed in.
    pub const ALL: Self = Self((1 << Scope::ALL.len()) - 1);

    /// True if this one is among them.
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// True if all of the others are among them.
    pub fn contains_all(self, others: Self) -> bool {
        others.0 & !self.0 == 0
    }

    /// Those that are not among the others.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// True if there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL
            .into_iter()
            .filter(move |scope| self.contains(*scope))
    }

    /// Those of the stored words that this program knows; an unknown one gives no right.
    pub(crate) fn of_words(words: &[String]) -> Self {
        let known = |scope: &Scope| words.contains(&word(scope));
        Scope::ALL.into_iter().filter(known).collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        let bits = scopes.into_iter().fold(0, |bits, scope| bits | scope.bit());
        Self(bits)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&word(self))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.iter().map(|scope| scope.to_string()).collect();
        f.write_str(&words.join(", "))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scopes({self})")
    }
}
