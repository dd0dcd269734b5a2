//! Write: a whole file.

use shared_sandbox::{Outcome, Request, Write};
use shared_types::{
    Effect,
    limits::{FILE_OPERATION_WITHIN, MAX_INLINE_FILE_BYTES},
};

use super::{Arguments, Ask, BadArguments, Ended, Kind, Parameter, Prepared, Rendered, Tool};

/// Writes a whole file.
#[derive(Debug, Clone, Copy)]
pub struct WriteTool;

impl Tool for WriteTool {
    fn name(&self) -> &str {
        "Write"
    }

    fn aliases(&self) -> &[&str] {
        &["write_file", "create_file"]
    }

    fn description(&self) -> &str {
        "Writes a whole file: a new one, with the directories above it, or in place of the one \
         that is there. To change a part of a file use Edit."
    }

    fn guidance(&self) -> Option<&str> {
        Some("Write a new file with Write.")
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::required(
                "path",
                Kind::PATH,
                "The file, relative to the workspace root.",
            ),
            Parameter::required(
                "content",
                Kind::Text {
                    empty: true,
                    at_most: MAX_INLINE_FILE_BYTES,
                    instead: "write the beginning and add the rest with Shell",
                },
                "Its whole new content.",
            ),
        ];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Effectful
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        Ok(Prepared::within(
            FILE_OPERATION_WITHIN,
            Request::Write(Write {
                path: arguments.text("path").to_owned(),
                content: arguments.text("content").as_bytes().to_vec(),
            }),
        ))
    }

    fn render(&self, ended: &Ended<'_>, _limit: usize) -> Option<Rendered> {
        let (Request::Write(asked), Outcome::Written(written)) = (ended.request, ended.outcome)
        else {
            return None;
        };
        let (path, bytes) = (&asked.path, written.bytes);
        Some(Rendered::completed(match written.before {
            None => format!("made {path} with {bytes} bytes"),
            Some(before) if before == written.after => {
                format!("{path} has these {bytes} bytes already; nothing changed")
            }
            Some(_) => format!("replaced {path}, which now has {bytes} bytes"),
        }))
    }
}
