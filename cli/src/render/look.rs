//! The look at the place of a turn: what people are told of it.

use shared_types::{
    OperationId,
    event::{InstructionFile, ProjectFile},
};

use super::{MAX_NOTE, clean::clean_line};

/// The looks of a session.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// The operation that looks at the place of the turn; it is not shown.
    operation: Option<OperationId>,
    /// True once people were told of rules that do not count.
    told_of_rules: bool,
}

impl Look {
    /// The look of the turn is this operation.
    pub(super) fn placed(&mut self, operation: OperationId) {
        self.operation = Some(operation);
    }

    /// True if this operation is the look of the turn.
    pub(super) fn is(&self, operation: OperationId) -> bool {
        self.operation == Some(operation)
    }

    /// The words on the instructions of a place, where they are new, on files that were not read, and once on rules of the
    /// project that do not count.
    pub(super) fn seen(
        &mut self,
        instructions: Option<&[InstructionFile]>,
        unread: &[String],
        project: Option<&ProjectFile>,
    ) -> Vec<String> {
        let paths = instructions.map(|files| {
            let files = files.iter().map(|file| match file.cut {
                true => format!("{} (its beginning; 32 KiB are read in all)", file.path),
                false => file.path.clone(),
            });
            files.collect::<Vec<_>>().join(", ")
        });
        let read = paths.map(|paths| match paths.is_empty() {
            true => "instructions: none any more".to_owned(),
            false => format!("instructions: {}", clean_line(&paths, MAX_NOTE)),
        });
        let unread = unread
            .iter()
            .map(|why| format!("not read: {}", clean_line(why, MAX_NOTE)));
        let rules = project.filter(|file| !file.trusted && !self.told_of_rules);
        self.told_of_rules |= rules.is_some();
        let rules = rules.map(|file| {
            let path = clean_line(&file.path, MAX_NOTE);
            format!(
                "this folder has rules for agents in {path}, which do not count until you trust them: gantry permissions trust"
            )
        });
        read.into_iter().chain(unread).chain(rules).collect()
    }
}
