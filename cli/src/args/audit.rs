//! `gantry audit`.

use std::time::Duration;

use clap::Args as Arguments;
use shared_types::parse_duration;

#[derive(Debug, Arguments)]
pub(crate) struct Audit {
    /// Keep printing new entries until Ctrl-C
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print only this person's actions; also takes a runner's id, or `system`
    #[arg(long, value_name = "NAME")]
    pub(crate) who: Option<String>,
    /// Print only entries of this past time, such as 2h or 7d [default: the newest entries]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) since: Option<Duration>,
    /// The most entries to print without --since
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}
