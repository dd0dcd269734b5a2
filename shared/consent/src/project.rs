//! The rules that a file of a project proposes. They count only once a person trusts the file.
//!
//! ```toml
//! allow = ["Shell(cargo test *)", "Write(src/**)"]
//! ask = []
//! deny = ["Shell(git push *)"]
//! ```
//!
//! Paths begin in the project's folder, and no rule about files holds outside of it.

use serde::Deserialize;

use crate::{Decision, InvalidRule, Rule};

/// Most rules of a file.
const MAX_RULES: usize = 200;

/// The rules of a project's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRules(Vec<(Decision, Rule)>);

/// A text that is no file with rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProjectRules {
    /// It is no TOML, or has other keys, or a rule that cannot be read.
    #[error("{0}")]
    Form(String),
    /// It has more than 200 rules.
    #[error("it has {0} rules; at most {MAX_RULES} can count")]
    Many(usize),
    /// A rule cannot be used in this folder.
    #[error("{rule} cannot be used in this folder: {error}")]
    Place {
        /// The rule.
        rule: String,
        /// The reason.
        error: InvalidRule,
    },
}

/// The file, word by word.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    #[serde(default)]
    allow: Vec<Rule>,
    #[serde(default)]
    ask: Vec<Rule>,
    #[serde(default)]
    deny: Vec<Rule>,
}

impl ProjectRules {
    /// The rules of this text, for the project in this folder, which is relative to the sandbox's root; empty for the
    /// root itself. Those that deny come first, then those that ask.
    ///
    /// # Errors
    /// The text is no such file. None of its rules can count then.
    pub fn read(text: &str, folder: &str) -> Result<Self, InvalidProjectRules> {
        let words: Words = toml::from_str(text)
            .map_err(|error| InvalidProjectRules::Form(error.message().to_owned()))?;
        let lists = [
            (Decision::Deny, words.deny),
            (Decision::Ask, words.ask),
            (Decision::Allow, words.allow),
        ];
        let count = lists.iter().map(|(_, rules)| rules.len()).sum();
        if count > MAX_RULES {
            return Err(InvalidProjectRules::Many(count));
        }
        let rules = lists
            .into_iter()
            .flat_map(|(decision, rules)| rules.into_iter().map(move |rule| (decision, rule)));
        let placed = rules.map(|(decision, rule)| match rule.below(folder) {
            Ok(placed) => Ok((decision, placed)),
            Err(error) => Err(InvalidProjectRules::Place {
                rule: rule.to_string(),
                error,
            }),
        });
        Ok(Self(placed.collect::<Result<_, _>>()?))
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rules that count: all of them, or only those that ask and deny, where the file is not as it was trusted.
    pub fn counting(self, is_as_trusted: bool) -> impl Iterator<Item = (Decision, Rule)> {
        let rules = self.0.into_iter();
        rules.filter(move |(decision, _)| is_as_trusted || *decision != Decision::Allow)
    }
}
