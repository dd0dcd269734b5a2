//! `gantry runners`.

use std::path::PathBuf;

use clap::{Args as Arguments, Subcommand};
use shared_api::CreateJoinToken;
use shared_types::parse_duration;

#[derive(Debug, Subcommand)]
pub(crate) enum Runners {
    /// Choose your active runner, on which your sessions work
    Use {
        /// The runner's name or id; RUNNER/WORKSPACE for a workspace beside its first one
        name: String,
    },
    /// List them (the default)
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Create a join token, with which a machine enrols as a runner
    Add(AddRunner),
    /// List or end the join tokens with which machines can still enrol
    Tokens {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        command: Option<JoinTokens>,
    },
    /// Add a folder of this machine as a workspace of its runner
    AddWorkspace {
        /// The folder
        #[arg(value_name = "FOLDER", default_value = ".")]
        folder: PathBuf,
        /// The name of the workspace on its runner [default: the folder's name]
        #[arg(long)]
        name: Option<String>,
    },
    /// Rename a runner: it stays the same one wherever it was chosen
    Rename {
        /// The runner's name or id
        name: String,
        /// Its new name: a-z, 0-9, dashes, dots and underscores
        new: String,
    },
    /// Let a runner drain: it is given nothing new to run, and what runs there goes on
    Drain {
        /// The runner's name or id
        name: String,
    },
    /// Give a runner that drains work again
    Undrain {
        /// The runner's name or id
        name: String,
    },
    /// Remove a runner: it can never connect again
    Remove {
        /// The runner's name or id
        name: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Let a person, or everyone, use a runner of yours
    Share {
        /// The runner's name or id
        name: String,
        /// The person's name, or `everyone`
        #[arg(long, value_name = "PERSON")]
        with: String,
    },
    /// Stop sharing a runner
    Unshare {
        /// The runner's name or id
        name: String,
        /// The person's name, or `everyone` [default: all people that it is shared with]
        #[arg(long, value_name = "PERSON")]
        with: Option<String>,
    },
    /// Become the owner of a runner (admins)
    Take {
        /// The runner's name or id
        name: String,
    },
    /// Grant the isolation that a runner reports, which the server cannot check (admins)
    Trust {
        /// The runner's name or id
        name: String,
    },
    /// Withdraw that grant (admins)
    Distrust {
        /// The runner's name or id
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum JoinTokens {
    /// List them (the default)
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// End a join token: no machine enrols with it any more
    Remove {
        /// The token's id, or the beginning of it
        id: String,
    },
}

#[derive(Debug, Arguments)]
pub(crate) struct AddRunner {
    /// The runner's name; without it, the machine chooses
    name: Option<String>,
    /// The validity of the token, such as 90s or 1h; at most 30d [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = valid_for)]
    valid_for: Option<u32>,
    /// The number of machines that may enrol with the token, at most 1000 [default: 1]
    #[arg(long, value_name = "MACHINES")]
    uses: Option<u32>,
    /// Remove these runners when they stop with nothing running, or after a day of silence
    #[arg(long)]
    ephemeral: bool,
    /// A label of these runners; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// The source addresses that may enrol, such as 10.0.0.0/8 [default: all]
    #[arg(long, value_name = "ADDRESSES")]
    from: Option<String>,
    /// Print one JSON object with the token and the server
    #[arg(long)]
    pub(crate) json: bool,
}

impl AddRunner {
    /// The request to the server.
    pub(crate) fn terms(self) -> CreateJoinToken {
        CreateJoinToken {
            name: self.name.unwrap_or_default(),
            valid_for_s: self.valid_for,
            uses: self.uses,
            ephemeral: self.ephemeral,
            labels: self.labels.into_iter().collect(),
            from: self.from,
        }
    }
}

fn valid_for(text: &str) -> Result<u32, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    u32::try_from(time.as_secs()).map_err(|_| "30d is the longest".to_owned())
}

fn label(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write a label as key=value"),
    }
}
