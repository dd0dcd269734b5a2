//! The command line.

use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, builder::FalseyValueParser};
use shared_types::parse_duration;

use crate::connection::Transports;

/// What a service manager can go by.
pub(crate) const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong usage, 77 the runner must be enrolled (anew)";

/// Lends this machine's hands to agents on a Gantry server.
#[derive(Debug, Parser)]
#[command(name = "gantry-runner", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    /// Gantry's home; the runner uses the folder `runner` in it [default: ~/.gantry]
    #[arg(long, value_name = "DIR", env = "GANTRY_HOME", global = true)]
    pub(crate) home: Option<PathBuf>,
    /// How log lines look: text or json
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        env = "GANTRY_LOG_FORMAT",
        global = true
    )]
    pub(crate) log_format: String,
    /// What is logged, such as `info` or `gantry_runner=debug`
    #[arg(long, value_name = "FILTER", env = "GANTRY_LOG", global = true)]
    pub(crate) log: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Make this machine known to a server, with a join token
    Enrol(EnrolArgs),
    /// Serve the server's operations until a signal
    Run(RunArgs),
    /// Change where the server is reached; who it is stays. The daemon must not run
    Servers(ServersArgs),
    /// Say whether this home is enrolled, where, whether a daemon runs, and where its link ends
    Status,
}

#[derive(Debug, Args)]
pub(crate) struct EnrolArgs {
    /// The server's address, such as `https://gantry.example:7443`. May be repeated: then each
    /// attempt to reach it goes to the next one, and any of them must be the same server
    #[arg(long = "server", value_name = "URL", required = true)]
    pub(crate) servers: Vec<String>,
    /// The join token; `-` reads it from standard input [otherwise: --token-file, GANTRY_JOIN_TOKEN, standard input]
    #[arg(value_name = "TOKEN", allow_hyphen_values = true)]
    pub(crate) token: Option<String>,
    /// What carries the link: gRPC, and a WebSocket where gRPC does not pass, or one of them
    #[arg(long, value_enum, default_value_t)]
    pub(crate) transport: Transports,
    /// A file that holds the join token
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// The runner's name, where the token does not fix it [default: the token's, or the host's]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// A label, shown in lists as JSON; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Where commands run and files lie [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Allow http:// to another machine: everybody on the way can read and change everything
    #[arg(long)]
    pub(crate) allow_plain_text: bool,
    /// Give up the runner that this home belongs to now
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServersArgs {
    /// The server's addresses from now on, in the place of those before
    #[arg(value_name = "URL", required = true)]
    pub(crate) servers: Vec<String>,
    /// Allow http:// to another machine: everybody on the way can read and change everything
    #[arg(long)]
    pub(crate) allow_plain_text: bool,
}

/// What may be asked for as the longest wait: below it a server that restarts would be stormed.
const LONGEST_WAIT: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3600);

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// How long running commands may go on after SIGINT. SIGTERM hands them over to the next daemon
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub(crate) drain_for: Duration,
    /// How long commands may go on while there is no link to the server, where their own time limit
    /// is not longer; then they are stopped as orphaned
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = parse_duration)]
    pub(crate) disconnect_for: Duration,
    /// Start a command only once the disk has what is written down of it. Without it, what a
    /// crash of the whole machine leaves in doubt is reported as lost, and never run again
    #[arg(long)]
    pub(crate) sync_before_start: bool,
    /// What carries the link: gRPC, and a WebSocket where gRPC does not pass, or one of them
    #[arg(long, value_enum, default_value_t)]
    pub(crate) transport: Transports,
    /// The program that supervises commands; else gantry-supervisor beside this one
    #[arg(long, value_name = "PATH")]
    pub(crate) supervisor: Option<PathBuf>,
    /// Longest wait before another attempt to reach the server, from 100ms to 1h [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = longest_wait)]
    pub(crate) longest_wait: Option<Duration>,
    /// Let the system write a core dump after a crash, and other processes of this user read the
    /// daemon's memory and environment, its key included
    #[arg(long, env = "GANTRY_DUMPABLE", value_parser = FalseyValueParser::new())]
    pub(crate) dumpable: bool,
}

fn label(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write a label as key=value"),
    }
}

fn longest_wait(text: &str) -> Result<Duration, String> {
    let wait = parse_duration(text).map_err(|error| error.to_string())?;
    match LONGEST_WAIT.contains(&wait) {
        true => Ok(wait),
        false => Err("write a time from 100ms to 1h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_token_and_labels_are_read_as_they_stand() {
        let line = "gantry-runner enrol --server https://x - --label os=linux --label gpu=";
        let Verb::Enrol(args) = Cli::try_parse_from(line.split(' ')).expect("a line").verb else {
            panic!("another verb");
        };
        assert_eq!(args.token.as_deref(), Some("-"));
        let pairs = [("os", "linux"), ("gpu", "")].map(|(k, v)| (k.into(), v.into()));
        assert_eq!(args.labels, pairs);
        let bad = "gantry-runner enrol --server https://x --label linux";
        assert!(Cli::try_parse_from(bad.split(' ')).is_err());
    }

    #[test]
    fn the_longest_wait_may_be_a_part_of_a_second_but_no_storm() {
        let run =
            |wait: &str| Cli::try_parse_from(["gantry-runner", "run", "--longest-wait", wait]);
        let Verb::Run(args) = run("0.2").expect("a line").verb else {
            panic!("another verb");
        };
        assert_eq!(args.longest_wait, Some(Duration::from_millis(200)));
        assert_eq!(args.disconnect_for, Duration::from_secs(15 * 60));
        assert!(run("1h").is_ok() && run("200ms").is_ok());
        for wrong in ["0", "0.09", "-1", "NaN", "inf", "3601", "2h", "soon"] {
            assert!(run(wrong).is_err(), "{wrong}");
        }
    }
}
