//! What an agent may do without being asked: its mode, and the risk of a call.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The freedom of an agent, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Mode {
    /// It only reads, and ends with a plan that a person accepts.
    Plan,
    /// It asks before each call that may change something.
    Ask,
    /// It asks only before calls against whose effects the sandbox does not protect.
    Auto,
    /// It does not ask.
    Full,
}

impl Mode {
    /// Every mode, from the least free to the freest.
    pub const ALL: [Self; 4] = [Self::Plan, Self::Ask, Self::Auto, Self::Full];

    /// Its name in settings and commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::Auto => "auto",
            Self::Full => "full",
        }
    }

    /// Its meaning, in a few words for people.
    pub fn means(self) -> &'static str {
        match self {
            Self::Plan => "only reads, and ends with a plan",
            Self::Ask => "asks before each change",
            Self::Auto => "asks where the sandbox does not protect",
            Self::Full => "does not ask",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no mode has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no mode is called {0:?}; the modes are plan, ask, auto and full")]
pub struct UnknownMode(String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        let mut all = Self::ALL.into_iter();
        all.find(|mode| mode.name() == text)
            .ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

/// The harm that a call may do, as far as its words tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Risk {
    /// It only reads, and sends nothing away.
    Low,
    /// It may change what is in its sandbox.
    Medium,
    /// It may destroy, send away, or reach beyond its sandbox; or its words do not tell.
    High,
}

impl Risk {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_reads_back_and_a_freer_one_is_greater() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
            assert_eq!(serde_json::to_value(mode).ok(), Some(mode.name().into()));
        }
        assert!(Mode::ALL.is_sorted());
        let unknown = "bypass".parse::<Mode>().expect_err("no mode");
        assert!(unknown.to_string().contains("plan, ask, auto and full"));
    }
}
