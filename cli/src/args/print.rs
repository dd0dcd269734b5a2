//! One message for a script.

use std::path::PathBuf;

use clap::{Args as Arguments, ValueEnum};
use shared_types::Mode;

use super::Chat;
use crate::pick::SessionName;

#[derive(Debug, Arguments)]
pub(crate) struct Print {
    /// The message. Piped standard input is appended to it
    #[arg(required = true)]
    pub(crate) text: Vec<String>,
    /// The form of standard output
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// Have the answer be one JSON value that this JSON Schema accepts
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// Work in this mode: plan, ask, auto or full
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    /// Allow calls by this rule, such as "Shell(cargo test *)"; may be repeated
    #[arg(long = "allow", value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// The most model calls
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=500))]
    pub(crate) max_steps: Option<u32>,
    /// Continue this session
    #[arg(long, value_name = "ID", conflicts_with = "resume")]
    pub(crate) session: Option<SessionName>,
    /// Continue the most recently used session that is not archived
    #[arg(long = "continue", short = 'c')]
    pub(crate) resume: bool,
    /// Pin the session to this runner (name or id)
    #[arg(long, value_name = "NAME")]
    pub(crate) runner: Option<String>,
    /// Answer with this model, tier or list of models
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Work in this directory of the runner's workspace
    #[arg(long = "dir", value_name = "DIR", conflicts_with_all = ["session", "resume"])]
    pub(crate) directory: Option<String>,
}

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// The answer alone
    Text,
    /// One JSON object at the end
    Json,
    /// One JSON object per event, and one at the end
    StreamJson,
}

impl Print {
    /// The session to begin or to continue, as `gantry chat` takes it.
    pub(crate) fn chat(&self) -> Chat {
        Chat {
            session: self.session.clone(),
            resume: self.resume,
            runner: self.runner.clone(),
            model: self.model.clone(),
            directory: self.directory.clone(),
            json: true,
            ..Chat::default()
        }
    }
}
