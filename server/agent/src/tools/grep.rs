//! Grep: find lines by content.

use shared_sandbox::{Grep, Outcome, Request};
use shared_types::{Effect, limits::FILE_OPERATION_WITHIN};

use super::{
    Arguments, Ask, BadArguments, Ended, Kind, Parameter, Prepared, Rendered, Tool,
    lines::{lines, not_searched, unread_rules},
};

const MAX_MATCHES: u32 = 500;

/// Finds lines by content.
#[derive(Debug, Clone, Copy)]
pub struct GrepTool;

impl Tool for GrepTool {
    fn name(&self) -> &str {
        "Grep"
    }

    fn aliases(&self) -> &[&str] {
        &["search", "search_files"]
    }

    fn description(&self) -> &str {
        "Finds lines by content and shows them as path:line:text. What .gitignore names is left \
         out, and binary files, of which that is said; long lines are cut."
    }

    fn guidance(&self) -> Option<&str> {
        Some("Search in files with Grep.")
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::required(
                "pattern",
                Kind::PATTERN,
                "A regular expression (syntax of Rust's regex crate), matched line by line.",
            ),
            Parameter::optional(
                "path",
                Kind::DIRECTORY,
                "The file or directory to search, relative to the workspace root; default the root.",
            ),
            Parameter::optional(
                "files",
                Kind::DIRECTORY,
                "Only in files whose path below path fits this glob, such as *.rs or src/**/*.rs; without a slash it \
                        fits at any depth; default all.",
            ),
            Parameter::optional(
                "ignore_case",
                Kind::Flag,
                "Whether upper and lower case are the same; default false.",
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
            Request::Grep(Grep {
                path: arguments.text("path").to_owned(),
                pattern: arguments.text("pattern").to_owned(),
                files: arguments.text("files").to_owned(),
                ignore_case: arguments.flag("ignore_case"),
                max_matches: MAX_MATCHES,
            }),
        ))
    }

    fn render(&self, ended: &Ended<'_>, limit: usize) -> Option<Rendered> {
        let Outcome::Grepped(found) = ended.outcome else {
            return None;
        };
        let shown = found
            .matches
            .iter()
            .map(|found| format!("{}:{}:{}", found.path, found.line, found.text));
        let skipped = not_searched(&found.skipped, found.more_skipped);
        let said = unread_rules(found.unread_rules) + &skipped;
        let limit = limit.saturating_sub(said.len());
        let lines = match found.matches.is_empty() {
            true => "[no line matches]".to_owned(),
            false => lines(shown, found.more, limit, "narrow the pattern or the files"),
        };
        Some(Rendered::completed(said + &lines))
    }
}
