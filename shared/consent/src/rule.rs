//! Rules: what people allow, want to be asked about, or refuse.
//!
//! | rule | holds for |
//! |---|---|
//! | `Shell` | every command |
//! | `Shell(git push *)` | commands that begin with these words; `*` within a word is a pattern |
//! | `Shell(git push)` | that command without further words |
//! | `Shell(=TEXT)` | exactly this text |
//! | `Read(**/.env)`, `Write(src/**)` | paths relative to the sandbox's root; `Edit` and `Patch` mean `Write` |
//! | `WebFetch(domain:docs.rs)` | the host and its subdomains |
//! | `Tool(web_search)` | a tool by its name |
//! | `mcp__github`, `mcp__github__create_issue` | all tools of a tool server, or one of them |

pub(crate) mod pattern;
pub(crate) mod place;

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use pattern::Pattern;
use place::{HostPattern, PathPattern};

/// The longest rule, in bytes.
const MAX_RULE: usize = 500;

/// A rule in its canonical text. The text form of [`fmt::Display`] reads back as the same rule.
#[derive(Debug, Clone)]
pub struct Rule {
    text: String,
    pub(crate) subject: RuleSubject,
}

/// The deeds that a rule is about.
#[derive(Debug, Clone)]
pub(crate) enum RuleSubject {
    Shell(Pattern),
    Read(PathPattern),
    Write(PathPattern),
    Fetch(Option<HostPattern>),
    Tool(Option<String>),
    /// The tools of a tool server: all, or one of this name.
    Server(String),
}

/// A text that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRule {
    /// It is longer than 500 bytes.
    #[error("the rule has {0} bytes; shorten it to 500")]
    Long(usize),
    /// It has a line end or another control character.
    #[error("the rule has a control character; write it on one line")]
    Control,
    /// Its first word is unknown.
    #[error("no rule is called {0:?}; use Shell, Read, Write, WebFetch, Tool or mcp__SERVER")]
    Name(String),
    /// It has no closing bracket, or text after it.
    #[error("the rule does not end with its bracket; write it like Shell(cargo test *)")]
    Bracket,
    /// The brackets are empty.
    #[error("the rule has empty brackets; leave them out to mean everything")]
    Empty,
    /// The path pattern is not relative, or no pattern.
    #[error("{0:?} is no pattern for paths: write it relative to the workspace, like src/**")]
    Path(String),
    /// The domain is none.
    #[error("{0:?} is no domain; write it like WebFetch(domain:docs.rs)")]
    Domain(String),
}

impl FromStr for Rule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let text = text.trim();
        if text.len() > MAX_RULE {
            return Err(InvalidRule::Long(text.len()));
        }
        if text.chars().any(char::is_control) {
            return Err(InvalidRule::Control);
        }
        let (name, inner) = match text.split_once('(') {
            Some((name, rest)) => (
                name,
                Some(rest.strip_suffix(')').ok_or(InvalidRule::Bracket)?),
            ),
            None => (text, None),
        };
        if inner.is_some_and(|inner| inner.trim().is_empty()) {
            return Err(InvalidRule::Empty);
        }
        Self::of(name.trim(), inner.map(str::trim))
    }
}

impl Rule {
    fn of(name: &str, inner: Option<&str>) -> Result<Self, InvalidRule> {
        let (name, inner, subject) = match name {
            "Shell" => {
                let pattern = Pattern::new(inner);
                ("Shell", pattern.to_string(), RuleSubject::Shell(pattern))
            }
            "Read" => {
                let place = PathPattern::new(inner)?;
                ("Read", place.to_string(), RuleSubject::Read(place))
            }
            "Write" | "Edit" | "Patch" => {
                let place = PathPattern::new(inner)?;
                ("Write", place.to_string(), RuleSubject::Write(place))
            }
            "WebFetch" => {
                let host = inner.map(HostPattern::new).transpose()?;
                let text = host
                    .as_ref()
                    .map(HostPattern::to_string)
                    .unwrap_or_default();
                ("WebFetch", text, RuleSubject::Fetch(host))
            }
            "Tool" => {
                let tool = inner.map(str::to_owned);
                (
                    "Tool",
                    tool.clone().unwrap_or_default(),
                    RuleSubject::Tool(tool),
                )
            }
            server if inner.is_none() && is_server(server) => {
                // As Claude Code writes all of them.
                let server = server.strip_suffix("__*").unwrap_or(server);
                let subject = RuleSubject::Server(server.to_owned());
                return Ok(Self {
                    text: server.to_owned(),
                    subject,
                });
            }
            other => return Err(InvalidRule::Name(other.to_owned())),
        };
        let text = match inner.as_str() {
            "" => name.to_owned(),
            inner => format!("{name}({inner})"),
        };
        Ok(Self { text, subject })
    }
}

/// The beginning of the names of tools of tool servers.
pub(crate) const SERVER_PREFIX: &str = "mcp__";

/// True for `mcp__SERVER`, `mcp__SERVER__TOOL` and `mcp__SERVER__*`.
fn is_server(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(SERVER_PREFIX) else {
        return false;
    };
    let rest = rest.strip_suffix("__*").unwrap_or(rest);
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !rest.is_empty() && !rest.starts_with('_') && rest.bytes().all(is_letter)
}

/// True if the rule `mcp__…` holds for the tool of this name. No name of a server has `__`, or `_` at an end.
pub(crate) fn holds_for_server(rule: &str, tool: &str) -> bool {
    let is_whole = !rule[SERVER_PREFIX.len()..].contains("__");
    let below = tool.strip_prefix(rule);
    tool == rule || is_whole && below.is_some_and(|below| below.starts_with("__"))
}

impl Rule {
    /// The rule for what lies below this folder, which is relative to the sandbox's root; empty for the root itself.
    /// A rule about files names them from there, and every other rule stays as it is.
    ///
    /// # Errors
    /// Fails if the rule with the folder is too long, or the folder cannot stand in a pattern.
    pub(crate) fn below(&self, folder: &str) -> Result<Self, InvalidRule> {
        let (name, place) = match &self.subject {
            RuleSubject::Read(place) if !folder.is_empty() => ("Read", place),
            RuleSubject::Write(place) if !folder.is_empty() => ("Write", place),
            _ => return Ok(self.clone()),
        };
        if folder.contains('\\') {
            return Err(InvalidRule::Path(folder.to_owned()));
        }
        let pattern = match place.pattern() {
            "" => "**",
            pattern => pattern,
        };
        format!("{name}({}/{pattern})", globset::escape(folder)).parse()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Rule {}

impl std::hash::Hash for Rule {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl Serialize for Rule {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The answer to what an agent asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It runs.
    Allow,
    /// A person is asked.
    Ask,
    /// It is refused.
    Deny,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// A word that is no decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no decision is called {0:?}; the decisions are allow, ask and deny")]
pub struct UnknownDecision(String);

impl FromStr for Decision {
    type Err = UnknownDecision;

    fn from_str(text: &str) -> Result<Self, UnknownDecision> {
        match text {
            "allow" => Ok(Self::Allow),
            "ask" => Ok(Self::Ask),
            "deny" => Ok(Self::Deny),
            other => Err(UnknownDecision(other.to_owned())),
        }
    }
}

/// A rule with its decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruled<T> {
    /// The rule.
    pub rule: Rule,
    /// The answer where it holds.
    pub decision: Decision,
    /// The layer or the person that set it.
    pub by: T,
}
