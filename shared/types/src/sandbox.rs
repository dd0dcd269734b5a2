//! The specification and the state of a sandbox of a pool.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

/// The specification of a sandbox of a pool, which the server gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// Its name, unique on its runner: [`is_sandbox_name`].
    pub name: String,
    /// The name of the pool's template that it is made from.
    pub template: String,
    /// The most that its commands may use.
    pub limits: SandboxLimits,
    /// The networks that its commands can reach.
    pub network: SandboxNetwork,
    /// True if policy lets its commands be root. Else a template that gives them `sudo` is refused.
    #[serde(default)]
    pub may_sudo: bool,
}

/// The most that all commands of a sandbox may use together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxLimits {
    /// Memory, in bytes: 64 MiB to 1 TiB.
    pub memory_bytes: u64,
    /// Processor time, in thousandths of a processor: 50 to 1,024,000.
    pub cpu_millis: u32,
    /// Processes and threads at the same time: 8 to 32,768.
    pub processes: u32,
    /// The longest time without an operation before the sandbox is stopped, in milliseconds: one minute to 30
    /// days.
    pub idle_for_ms: u64,
}

/// The networks that a sandbox can reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxNetwork {
    /// Nothing but itself.
    #[default]
    None,
    /// Everything that its runner's host reaches.
    Open,
}

/// The privilege that a template gives to the commands of its sandboxes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxPrivilege {
    /// An ordinary user, for good.
    #[default]
    Strict,
    /// Root of the sandbox, by `sudo`, without a password.
    Sudo,
}

/// The state of a sandbox of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxState {
    /// It is wanted, and its runner has not said anything of it yet.
    Wanted,
    /// It is being made or started.
    Starting,
    /// Commands can run there.
    Running,
    /// It is stopped with its files kept; the next operation starts it.
    Stopped,
    /// It could not be made or started; the next operation tries again.
    Failed,
    /// It is gone with its files.
    Removed,
}

/// A limit outside its bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be {least} to {most}, not {given}")]
pub struct LimitError {
    what: &'static str,
    least: u64,
    most: u64,
    given: u64,
}

impl Default for SandboxLimits {
    /// 512 MiB, one processor, 100 processes, half an hour.
    fn default() -> Self {
        Self {
            memory_bytes: 512 * 1024 * 1024,
            cpu_millis: 1000,
            processes: 100,
            idle_for_ms: 30 * 60 * 1000,
        }
    }
}

impl SandboxLimits {
    /// These limits, if each is within its bounds.
    ///
    /// # Errors
    /// Names the first one that is not.
    pub fn checked(self) -> Result<Self, LimitError> {
        let bounds = [
            ("memory (bytes)", 64 << 20, 1 << 40, self.memory_bytes),
            (
                "processor time (thousandths of a processor)",
                50,
                1_024_000,
                u64::from(self.cpu_millis),
            ),
            (
                "the number of processes",
                8,
                32_768,
                u64::from(self.processes),
            ),
            (
                "the idle time (milliseconds)",
                60_000,
                30 * 24 * 3_600_000,
                self.idle_for_ms,
            ),
        ];
        for (what, least, most, given) in bounds {
            if !(least..=most).contains(&given) {
                return Err(LimitError {
                    what,
                    least,
                    most,
                    given,
                });
            }
        }
        Ok(self)
    }

    /// The longest time without an operation before the sandbox is stopped.
    pub fn idle_for(&self) -> Duration {
        Duration::from_millis(self.idle_for_ms)
    }
}

/// True if `name` may name a sandbox or a template: `[a-z0-9][a-z0-9_.-]{0,127}`. It becomes part of the names of
/// a container and of its volume.
pub fn is_sandbox_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= 128
        && name.bytes().next().is_some_and(plain)
        && name
            .bytes()
            .all(|byte| plain(byte) || matches!(byte, b'_' | b'.' | b'-'))
}

impl SandboxState {
    /// Its name in rows and documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wanted => "wanted",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Removed => "removed",
        }
    }
}

impl SandboxNetwork {
    /// Its name in rows and documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Open => "open",
        }
    }
}

impl SandboxPrivilege {
    /// Its name in rows, documents and command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Sudo => "sudo",
        }
    }
}

/// A word that names no state, network or privilege.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown word")]
pub struct UnknownWord;

impl FromStr for SandboxState {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        [
            Self::Wanted,
            Self::Starting,
            Self::Running,
            Self::Stopped,
            Self::Failed,
            Self::Removed,
        ]
        .into_iter()
        .find(|state| state.name() == text)
        .ok_or(UnknownWord)
    }
}

impl FromStr for SandboxNetwork {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        [Self::None, Self::Open]
            .into_iter()
            .find(|network| network.name() == text)
            .ok_or(UnknownWord)
    }
}

impl FromStr for SandboxPrivilege {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        [Self::Strict, Self::Sudo]
            .into_iter()
            .find(|privilege| privilege.name() == text)
            .ok_or(UnknownWord)
    }
}

impl fmt::Display for SandboxPrivilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for SandboxState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for SandboxNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_outside_its_bounds_is_named() {
        assert_eq!(
            SandboxLimits::default().checked(),
            Ok(SandboxLimits::default())
        );
        let little = SandboxLimits {
            memory_bytes: 1024,
            ..SandboxLimits::default()
        };
        let error = little.checked().expect_err("too little").to_string();
        assert!(
            error.starts_with("memory (bytes) must be 67108864 to "),
            "{error}"
        );
    }

    #[test]
    fn a_name_that_would_lead_elsewhere_is_none() {
        for good in ["a", "usr_01k.x-y", "0"] {
            assert!(is_sandbox_name(good), "{good}");
        }
        for bad in ["", "-a", ".a", "A", "a/b", "a b", "ä", &"a".repeat(129)] {
            assert!(!is_sandbox_name(bad), "{bad}");
        }
    }
}
