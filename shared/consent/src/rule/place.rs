//! The paths and the hosts that rules name.

use std::fmt;

use globset::{GlobBuilder, GlobMatcher};
use url::Url;

use super::InvalidRule;
use crate::risk::paths::tidy;

/// A pattern for paths relative to the sandbox's root; without one, every path.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern(Option<(String, GlobMatcher)>);

impl PathPattern {
    pub(super) fn new(text: Option<&str>) -> Result<Self, InvalidRule> {
        let Some(text) = text else {
            return Ok(Self(None));
        };
        let invalid = || InvalidRule::Path(text.to_owned());
        let folder = text.ends_with('/');
        let pattern = tidy(text);
        let outside = text.starts_with(['/', '~']) || pattern.split('/').any(|part| part == "..");
        if outside || pattern.is_empty() {
            return Err(invalid());
        }
        let pattern = if folder {
            format!("{pattern}/**")
        } else {
            pattern
        };
        let glob = GlobBuilder::new(&pattern)
            .literal_separator(true)
            .build()
            .map_err(|_| invalid())?;
        Ok(Self(Some((pattern, glob.compile_matcher()))))
    }

    /// True if the path is one of those. A path that leaves the root is only covered by every path.
    pub(crate) fn holds(&self, path: &str) -> bool {
        match &self.0 {
            None => true,
            Some((_, glob)) => inside(path).is_some_and(|path| glob.is_match(path)),
        }
    }

    /// The pattern; empty for every path.
    pub(crate) fn pattern(&self) -> &str {
        self.0.as_ref().map_or("", |(pattern, _)| pattern)
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.pattern())
    }
}

/// A path with its `..` resolved; `None` if it leaves the root.
fn inside(path: &str) -> Option<String> {
    let path = tidy(path);
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A host, with its subdomains.
#[derive(Debug, Clone)]
pub(crate) struct HostPattern(String);

impl HostPattern {
    pub(super) fn new(text: &str) -> Result<Self, InvalidRule> {
        let invalid = || InvalidRule::Domain(text.to_owned());
        let name = text.strip_prefix("domain:").ok_or_else(invalid)?.trim();
        let name = name.strip_prefix("*.").unwrap_or(name);
        let host = url::Host::parse(name).map_err(|_| invalid())?.to_string();
        if host.contains('*') {
            return Err(invalid());
        }
        Ok(Self(host.trim_end_matches('.').to_owned()))
    }

    /// True if the URL's host is this one or below it; `None` if the URL has no host that can be read.
    pub(crate) fn holds(&self, url: &str) -> Option<bool> {
        let host = host(url)?;
        let below = host.strip_suffix(&self.0);
        Some(below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "domain:{}", self.0)
    }
}

/// The host of a URL for the web. `None` if programs could disagree about it: a backslash is a slash
/// to some and a part of a user's name to others.
pub(crate) fn host(url: &str) -> Option<String> {
    if url.contains('\\')
        || url
            .trim()
            .contains(|c: char| c.is_control() || c.is_whitespace())
    {
        return None;
    }
    let url = Url::parse(url.trim()).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let host = url.host_str()?.trim_end_matches('.').to_lowercase();
    (!host.is_empty()).then_some(host)
}
