//! `gantry people`.

use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum People {
    /// List them (the default)
    List {
        /// List those with this text in their names
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Invite a person with a one-time code, which works for seven days
    Invite {
        /// The person's name: a-z, 0-9 and dashes
        name: String,
        /// The person's role [default: the role of an earlier invitation, else member]
        #[arg(long, value_enum)]
        role: Option<Role>,
        /// Print one JSON object with the code
        #[arg(long)]
        json: bool,
    },
    /// Add a service account: it has keys (gantry keys add KEY --service NAME), and never signs in
    AddService {
        /// The account's name: a-z, 0-9 and dashes
        name: String,
        /// The account's role; not owner
        #[arg(long, value_enum, default_value = "member")]
        role: Role,
    },
    /// Change the role of a person or a service account
    Role {
        /// The person's name or id
        name: String,
        /// The new role
        #[arg(value_enum)]
        role: Role,
    },
    /// Remove a person or a service account: keys and sign-ins end at once, and running operations are stopped
    Remove {
        /// The person's name or id; `me` to leave
        name: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

/// The role of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Everything
    Owner,
    /// People who are no owners, all runners, settings, the audit log
    Admin,
    /// To work, on runners of their own and on shared ones
    Member,
    /// To look
    Viewer,
}
