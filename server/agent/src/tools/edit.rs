//! Edit: replace text in a file.

use shared_sandbox::{Edit, Outcome, Request};
use shared_types::{
    Effect,
    limits::{FILE_OPERATION_WITHIN, MAX_INLINE_FILE_BYTES},
};

use super::{Arguments, Ask, BadArguments, Ended, Kind, Parameter, Prepared, Rendered, Tool};

const INSTEAD: &str = "edit a smaller part";

/// Replaces text in a file.
#[derive(Debug, Clone, Copy)]
pub struct EditTool;

impl Tool for EditTool {
    fn name(&self) -> &str {
        "Edit"
    }

    fn aliases(&self) -> &[&str] {
        &["edit_file", "str_replace", "replace"]
    }

    fn description(&self) -> &str {
        "Replaces text in a file. The old text must stand in the file exactly once, character by \
         character, unless every occurrence is to be replaced. The file must have been read or \
         written in this conversation, and not changed by anything else since then."
    }

    fn guidance(&self) -> Option<&str> {
        Some("Change a file with Edit.")
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::required(
                "path",
                Kind::PATH,
                "The file, relative to the workspace root.",
            ),
            Parameter::required(
                "old",
                Kind::Text {
                    empty: false,
                    at_most: MAX_INLINE_FILE_BYTES,
                    instead: INSTEAD,
                },
                "The text to be replaced, without line numbers.",
            ),
            Parameter::required(
                "new",
                Kind::Text {
                    empty: true,
                    at_most: MAX_INLINE_FILE_BYTES,
                    instead: INSTEAD,
                },
                "The text to stand there instead.",
            ),
            Parameter::optional(
                "replace_all",
                Kind::Flag,
                "Replace every occurrence; default false.",
            ),
        ];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Effectful
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        if arguments.text("old") == arguments.text("new") {
            return Err(BadArguments::new(
                "the arguments \"old\" and \"new\" are the same, so nothing would change",
            ));
        }
        Ok(Prepared::within(
            FILE_OPERATION_WITHIN,
            Request::Edit(Edit {
                path: arguments.text("path").to_owned(),
                old: arguments.text("old").to_owned(),
                new: arguments.text("new").to_owned(),
                every: arguments.flag("replace_all"),
                expected: None,
            }),
        ))
    }

    fn render(&self, ended: &Ended<'_>, _limit: usize) -> Option<Rendered> {
        let (Request::Edit(asked), Outcome::Edited(edited)) = (ended.request, ended.outcome) else {
            return None;
        };
        let (path, line) = (&asked.path, edited.line);
        Some(Rendered::completed(match edited.replaced {
            1 => format!("edited {path} at line {line}"),
            count => format!("replaced {count} occurrences in {path}, the first at line {line}"),
        }))
    }
}
