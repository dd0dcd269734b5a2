//! The command that shows the usage of models.

use clap::{Args as Arguments, ValueEnum};
use shared_api::UsageBy;

use crate::pick::SessionName;

#[derive(Debug, Arguments)]
pub(crate) struct Usage {
    /// Sum from this day (UTC) or for this past time on, such as 2026-11-01 or 7d; 366d at most [default: 30d]
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Sum by this property
    #[arg(long, value_enum, default_value = "model")]
    pub(crate) by: By,
    /// Sum the calls of everyone (admins)
    #[arg(long)]
    pub(crate) all: bool,
    /// Sum a whole session, by model: an id, the beginning of one, or `last`
    #[arg(long, value_name = "ID", conflicts_with_all = ["since", "by", "all"])]
    pub(crate) session: Option<SessionName>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The property by which calls are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// The model and its provider
    Model,
    /// The person or service account
    Person,
    /// The day, in UTC
    Day,
}

impl From<By> for UsageBy {
    fn from(by: By) -> Self {
        match by {
            By::Model => Self::Model,
            By::Person => Self::Person,
            By::Day => Self::Day,
        }
    }
}
