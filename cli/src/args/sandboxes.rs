//! `gantry sandboxes`.

use std::time::Duration;

use clap::Subcommand;
use shared_types::parse_duration;

#[derive(Debug, Subcommand)]
pub(crate) enum Sandboxes {
    /// List sandboxes (the default): yours, and those of all users for admins
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show the recent changes of a sandbox's state, with reasons
    Logs {
        /// The sandbox's id, or the runner that has your sandbox
        sandbox: String,
    },
    /// Start a sandbox now instead of with its next command
    Start {
        /// The sandbox's id, or the runner that has your sandbox
        sandbox: String,
    },
    /// Stop a sandbox and its commands. Its files stay, and its next command starts it again
    Stop {
        /// The sandbox's id, or the runner that has your sandbox
        sandbox: String,
    },
    /// Remove a sandbox and its files
    Remove {
        /// The sandbox's id, or the runner that has your sandbox
        sandbox: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Change a sandbox's template, and its limits (admins), from its next start on
    Set(SetSandbox),
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct SandboxChanges {
    /// The template of the sandbox, one of its runner's. Its files stay
    #[arg(long, value_name = "NAME")]
    pub(crate) template: Option<String>,
    /// The memory limit, such as 512MiB or 2GiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,
    /// The limit of processors, such as 0.5 or 2
    #[arg(long, value_name = "NUMBER", value_parser = processors)]
    pub(crate) cpus: Option<u32>,
    /// The most processes and threads at the same time
    #[arg(long, value_name = "NUMBER")]
    pub(crate) processes: Option<u32>,
    /// Stop it after this time without a command, such as 30m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) idle_for: Option<Duration>,
    /// The network that it reaches: none, or open for all that its runner's host reaches
    #[arg(long, value_name = "none|open")]
    pub(crate) network: Option<String>,
}

#[derive(Debug, clap::Args)]
// A line that names all options has no room.
#[command(override_usage = "gantry sandboxes set [OPTIONS] <SANDBOX>")]
pub(crate) struct SetSandbox {
    /// The sandbox's id, or the runner that has your sandbox
    pub(crate) sandbox: String,
    #[command(flatten)]
    pub(crate) changes: SandboxChanges,
}

/// A number of bytes, with a unit.
fn size(text: &str) -> Result<u64, &'static str> {
    const UNITS: [(&str, u64); 4] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("", 1),
    ];
    let (digits, unit) = UNITS
        .into_iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))
        .unwrap_or((text, 1));
    let number: Option<u64> = digits.trim().parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(unit));
    bytes.ok_or("write a size such as 512MiB or 2GiB")
}

/// Thousandths of a processor.
fn processors(text: &str) -> Result<u32, &'static str> {
    let wrong = "write a number of processors such as 0.5 or 2";
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 3 || whole.is_empty() {
        return Err(wrong);
    }
    let thousandths = format!("{whole}{part:0<3}").parse();
    thousandths.map_err(|_| wrong)
}
