//! `gantry chat`.

use std::path::PathBuf;

use clap::Args as Arguments;
use shared_types::Mode;

use crate::pick::SessionName;

#[derive(Debug, Default, Arguments)]
pub(crate) struct Chat {
    /// The message; without one, a conversation starts. Piped standard input is appended to the
    /// message. End the message with `-` to wait for slow standard input; use </dev/null to append nothing
    pub(crate) text: Vec<String>,
    /// Continue this session
    #[arg(long, value_name = "ID", conflicts_with = "resume")]
    pub(crate) session: Option<SessionName>,
    /// Continue the most recently used session that is not archived, as --session last
    #[arg(long = "continue", short = 'c')]
    pub(crate) resume: bool,
    /// Pin the session to this runner (name or id); `-` removes the pin
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) runner: Option<String>,
    /// Show this image to the model with the message: a PNG, JPEG, GIF or WebP of this machine; may be repeated. In the
    /// message, @FILE does the same
    #[arg(long = "image", value_name = "FILE", requires = "text")]
    pub(crate) images: Vec<PathBuf>,
    /// Answer in this session with this model, tier (vanguard, balance, swift) or list of models; `-` goes back
    /// to your own choice
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) model: Option<String>,
    /// Work in this directory of the runner's workspace. Without it and --runner, a new session works in the
    /// present folder if that is in the workspace of this machine's runner
    #[arg(long = "dir", value_name = "DIR", conflicts_with_all = ["session", "resume"])]
    pub(crate) directory: Option<String>,
    /// Work in this mode: plan (only reads), ask (asks before changes), auto (asks where the sandbox does not
    /// protect) or full (does not ask)
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    /// Print one JSON object per line: events and live output. Nobody can be asked then: what needs consent does
    /// not run
    #[arg(long)]
    pub(crate) json: bool,
    /// Write plain lines one after the other, and draw none again: for screen readers. TERM=dumb does the same
    #[arg(long)]
    pub(crate) plain: bool,
}
