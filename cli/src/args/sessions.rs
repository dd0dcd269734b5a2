//! The commands that manage sessions.

use std::time::Duration;

use clap::{Args as Arguments, Subcommand};
use shared_types::parse_duration;

use crate::pick::SessionName;

#[derive(Debug, Arguments)]
pub(crate) struct ListSessions {
    /// The most sessions to list
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    /// List the archived ones
    #[arg(long)]
    pub(crate) archived: bool,
    /// List those with this text in their titles
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// List the agents of this session: an id, the beginning of one, or `last`
    #[arg(long, value_name = "SESSION")]
    pub(crate) agents: Option<SessionName>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List them, the most recently used first (the default)
    List(ListSessions),
    /// Give a session another title
    Rename {
        /// The session: an id, the beginning of one, or `last`
        session: SessionName,
        /// The new title
        #[arg(required = true)]
        title: Vec<String>,
    },
    /// Take a session off the list; the next message brings it back
    Archive {
        /// The session: an id, the beginning of one, or `last`
        session: SessionName,
    },
    /// Put an archived session back on the list; `last` is never an archived one
    Unarchive {
        /// The session: an id, or the beginning of one
        session: SessionName,
    },
    /// Delete a session for good, with all output of its commands; stops what it runs
    Delete {
        /// The session: an id, the beginning of one, or `last`
        session: SessionName,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Make a link that lets its readers read a session without signing in
    Share {
        /// The session: an id, the beginning of one, or `last`
        session: SessionName,
        /// The validity of the link, such as 12h or 30d [default: until `unshare`]
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        valid_for: Option<Duration>,
    },
    /// End all links to a session
    Unshare {
        /// The session: an id, the beginning of one, or `last`
        session: SessionName,
    },
}
