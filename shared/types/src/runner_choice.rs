//! The choice of a runner.

use std::{fmt, str::FromStr};

use crate::{IdError, RunnerId, SandboxId};

/// A runner, and a sandbox where one was chosen with it. Its text is the runner's id, or `RUNNER/SANDBOX` of both ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunnerChoice {
    /// The runner. It may have been revoked since.
    pub runner: RunnerId,
    /// The sandbox of that runner. If absent, the runner's first one.
    pub sandbox: Option<SandboxId>,
}

impl From<RunnerId> for RunnerChoice {
    fn from(runner: RunnerId) -> Self {
        let sandbox = None;
        Self { runner, sandbox }
    }
}

impl fmt::Display for RunnerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sandbox {
            Some(sandbox) => write!(f, "{}/{sandbox}", self.runner),
            None => self.runner.fmt(f),
        }
    }
}

impl FromStr for RunnerChoice {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let (runner, sandbox) = match text.split_once('/') {
            Some((runner, sandbox)) => (runner, Some(sandbox)),
            None => (text, None),
        };
        Ok(Self {
            runner: runner.parse()?,
            sandbox: sandbox.map(str::parse).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_read_as_it_was_written_and_a_damaged_one_is_refused() {
        let runner = RunnerId::from_u128(1);
        let in_sandbox = SandboxId::derive(runner, "api");
        for sandbox in [None, Some(in_sandbox)] {
            let choice = RunnerChoice { runner, sandbox };
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        for wrong in [
            "",
            "laptop",
            &format!("{runner}/"),
            &format!("{runner}/api"),
        ] {
            assert!(wrong.parse::<RunnerChoice>().is_err(), "{wrong:?}");
        }
    }
}
