//! The commands about consent: questions of agents, and rules.

use clap::{Args as Arguments, Subcommand, ValueEnum};
use shared_types::{ApprovalId, Mode};

use crate::pick::{IdName, SessionName, approval_name};

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List the questions that wait for an answer (the default)
    List(ListApprovals),
    /// Show a question: the whole command or change, where it would run, its risk
    Show {
        /// The question: an id, or the beginning of one
        #[arg(value_parser = approval_name)]
        approval: IdName<ApprovalId>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Allow what is asked
    Allow(Allow),
    /// Do not allow it
    Deny {
        /// The question: an id, or the beginning of one
        #[arg(value_parser = approval_name)]
        approval: IdName<ApprovalId>,
        /// Words to the model
        words: Vec<String>,
    },
    /// Answer a question that the model asks in words
    Answer {
        /// The question: an id, or the beginning of one
        #[arg(value_parser = approval_name)]
        approval: IdName<ApprovalId>,
        /// The answer
        #[arg(required = true)]
        words: Vec<String>,
    },
}

#[derive(Debug, Default, Arguments)]
pub(crate) struct ListApprovals {
    /// List those with an answer as well
    #[arg(long, short)]
    pub(crate) all: bool,
    /// The most questions to list
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Arguments)]
pub(crate) struct Allow {
    /// The question: an id, or the beginning of one
    #[arg(value_parser = approval_name)]
    pub(crate) approval: IdName<ApprovalId>,
    /// Allow the like from now on: the rule that the question names, or this one
    #[arg(long, value_name = "RULE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) always: Option<String>,
    /// Run this command in place of the one that is asked about
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// The mode in which a plan is carried out
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Permissions {
    /// List the rules that count for your agents, and who set them (the default)
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Set a rule, such as: gantry permissions add allow "Shell(cargo test *)"
    Add {
        /// What it decides
        decision: RuleDecision,
        /// The rule: Shell(…), Read(…), Write(…), WebFetch(domain:…) or Tool(…)
        rule: String,
        /// For all people of the tenant; that takes an admin
        #[arg(long)]
        tenant: bool,
    },
    /// Remove a rule
    Remove {
        /// The rule as the list shows it, or its id
        rule: String,
    },
    /// Trust the rules in the .gantry/permissions.toml of a project, as they are now
    Trust {
        /// The session whose last turn found the file: an id, the beginning of one, or `last`
        #[arg(default_value = "last")]
        session: SessionName,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Trust the rules of a project no more
    Untrust {
        /// The file as the list shows it, or the id of the trust
        file: String,
    },
    /// Explain what would be decided about a command
    Test {
        /// The command; with another option, the path or the address
        text: String,
        /// In this mode instead of yours
        #[arg(long, value_name = "MODE")]
        mode: Option<Mode>,
        /// At a place with this isolation [default: none]
        #[arg(long, value_name = "PROPERTIES")]
        isolation: Option<String>,
        /// The file is read
        #[arg(long, group = "deed")]
        read: bool,
        /// The file is written
        #[arg(long, group = "deed")]
        write: bool,
        /// The address is fetched
        #[arg(long, group = "deed")]
        fetch: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum RuleDecision {
    Allow,
    Ask,
    Deny,
}
