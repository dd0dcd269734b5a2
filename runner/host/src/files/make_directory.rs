//! Makes a directory.

use shared_sandbox::{FileFailure, MadeDirectory, MakeDirectory, Outcome};

use super::{Allowance, Announcer, Failure, step};
use crate::{Change, Effect, There, workspace::Workspace};

/// Makes the directory with its missing parents, where it is not there. Parents are no effects of the
/// change: as long as the last one is missing, it may be made again.
pub(super) fn make_directory(
    make: &MakeDirectory,
    workspace: &Workspace,
    allowance: &Allowance,
    announcer: &Announcer,
) -> Result<MadeDirectory, Failure> {
    match workspace.open_place(&make.path) {
        Ok(_) => return Ok(MadeDirectory { made: false }),
        Err(FileFailure::NotFound { .. }) => {}
        Err(failure) => return Err(failure.into()),
    }
    let done = MadeDirectory { made: true };
    let effect = Effect {
        path: workspace.path_of_change(&make.path),
        before: There::Nothing,
        after: There::Directory,
    };
    let change = Change {
        effects: vec![effect],
        unfinished: None,
        done: Outcome::MadeDirectory(done),
    };
    announcer.announce(change, allowance)?;
    workspace.make_directory(&make.path)?;
    step();
    Ok(done)
}
