//! The directory of the session.

use super::Scene;

pub(super) fn part(scene: &Scene<'_>) -> Option<String> {
    let directory = scene.transcript.directory();
    (!directory.is_empty()).then(|| {
        format!(
            "\nThis conversation works in the directory {directory:?} of the workspace: commands start there, and every \
             path that you give or are told is relative to it.\n"
        )
    })
}
