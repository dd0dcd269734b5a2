//! Glob: find files by name.

use shared_sandbox::{Glob, Outcome, Request};
use shared_types::{Effect, limits::FILE_OPERATION_WITHIN};

use super::{
    Arguments, Ask, BadArguments, Ended, Kind, Parameter, Prepared, Rendered, Tool,
    lines::{lines, unread_rules},
};

const MAX_PATHS: u32 = 1000;

/// Finds files by name.
#[derive(Debug, Clone, Copy)]
pub struct GlobTool;

impl Tool for GlobTool {
    fn name(&self) -> &str {
        "Glob"
    }

    fn aliases(&self) -> &[&str] {
        &["find", "find_files"]
    }

    fn description(&self) -> &str {
        "Finds files by name, the newest first. What .gitignore names is left out."
    }

    fn guidance(&self) -> Option<&str> {
        Some("Find files with Glob.")
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::required(
                "pattern",
                Kind::PATTERN,
                "A glob such as src/**/*.rs, relative to path; without a slash, as *.rs, it fits at any depth.",
            ),
            Parameter::optional(
                "path",
                Kind::DIRECTORY,
                "Where to search, relative to the workspace root; default the root.",
            ),
        ];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        Ok(Prepared::within(
            FILE_OPERATION_WITHIN,
            Request::Glob(Glob {
                path: arguments.text("path").to_owned(),
                pattern: arguments.text("pattern").to_owned(),
                max_paths: MAX_PATHS,
            }),
        ))
    }

    fn render(&self, ended: &Ended<'_>, limit: usize) -> Option<Rendered> {
        let Outcome::Globbed(found) = ended.outcome else {
            return None;
        };
        let said = unread_rules(found.unread_rules);
        let limit = limit.saturating_sub(said.len());
        let lines = match found.paths.is_empty() {
            true => "[no file has such a name]".to_owned(),
            false => lines(
                found.paths.iter().cloned(),
                found.more,
                limit,
                "narrow the pattern or the path",
            ),
        };
        Some(Rendered::completed(said + &lines))
    }
}
