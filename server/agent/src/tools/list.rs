//! List: a directory's entries.

use shared_sandbox::{EntryKind, List, ListedEntry, Outcome, Request};
use shared_types::{Effect, limits::FILE_OPERATION_WITHIN};

use super::{
    Arguments, Ask, BadArguments, Ended, Kind, Parameter, Prepared, Rendered, Tool, lines::lines,
};

const MAX_ENTRIES: u32 = 1000;

/// Lists a directory.
#[derive(Debug, Clone, Copy)]
pub struct ListTool;

impl Tool for ListTool {
    fn name(&self) -> &str {
        "List"
    }

    fn aliases(&self) -> &[&str] {
        &["list_files", "list_directory", "ls"]
    }

    fn description(&self) -> &str {
        "Lists a directory by name: directories end with /, links with @, files show their size \
         in bytes."
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[Parameter::optional(
            "path",
            Kind::DIRECTORY,
            "The directory, relative to the workspace root; default the root.",
        )];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        Ok(Prepared::within(
            FILE_OPERATION_WITHIN,
            Request::List(List {
                path: arguments.text("path").to_owned(),
                max_entries: MAX_ENTRIES,
                tree: false,
                after: String::new(),
            }),
        ))
    }

    fn render(&self, ended: &Ended<'_>, limit: usize) -> Option<Rendered> {
        let Outcome::Listed(listed) = ended.outcome else {
            return None;
        };
        Some(Rendered::completed(match listed.entries.is_empty() {
            true => "[the directory is empty]".to_owned(),
            false => lines(
                listed.entries.iter().map(line),
                listed.more,
                limit,
                "use Glob to find what you need",
            ),
        }))
    }
}

fn line(entry: &ListedEntry) -> String {
    let name = &entry.name;
    match entry.kind {
        EntryKind::Directory => format!("{name}/"),
        EntryKind::Link => format!("{name}@"),
        EntryKind::File => format!("{name}  {} bytes", entry.bytes),
        EntryKind::Other => format!("{name}  (a device, pipe or socket)"),
    }
}
