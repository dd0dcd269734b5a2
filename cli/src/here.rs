//! The workspace of this machine's runner that contains the present folder; a new session works there.

use std::{
    env, fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use shared_types::RunnerId;

/// Largest file that can be an enrolment, in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// A folder in the workspace of a runner.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Here {
    /// The runner.
    pub(crate) runner: RunnerId,
    /// The workspace; absent for the runner's first one.
    pub(crate) workspace: Option<String>,
    /// The folder, relative to the root of its workspace; empty for the root.
    pub(crate) directory: String,
}

/// The needed part of the runner's `runner.toml`.
#[derive(Deserialize)]
struct Enrolled {
    runner: RunnerId,
    workspace: PathBuf,
    #[serde(default)]
    workspaces: Vec<Workspace>,
}

#[derive(Deserialize)]
struct Workspace {
    name: String,
    folder: PathBuf,
}

/// Finds the present folder in the workspaces of the runner with this home. `None` if it is in none of them, or if the
/// enrolment cannot be read.
pub(crate) fn find(home: &Path) -> Option<Here> {
    of(home, &env::current_dir().ok()?)
}

/// The runner with this home, whose enrolment can be read.
pub(crate) fn runner(home: &Path) -> Option<RunnerId> {
    Some(enrolled(home)?.runner)
}

fn enrolled(home: &Path) -> Option<Enrolled> {
    let mut text = String::new();
    let file = fs::File::open(home.join("runner/runner.toml")).ok()?;
    file.take(MAX_FILE_BYTES).read_to_string(&mut text).ok()?;
    toml::from_str(&text).ok()
}

fn of(home: &Path, folder: &Path) -> Option<Here> {
    let enrolled = enrolled(home)?;
    let folder = folder.canonicalize().ok()?;
    let further = enrolled.workspaces.into_iter();
    let further = further.map(|workspace| (Some(workspace.name), workspace.folder));
    let all = std::iter::once((None, enrolled.workspace)).chain(further);
    let beneath = all.filter_map(|(workspace, root)| {
        let directory = folder.strip_prefix(root.canonicalize().ok()?).ok()?;
        let directory = directory.to_str()?.to_owned();
        Some(Here {
            runner: enrolled.runner,
            workspace,
            directory,
        })
    });
    // If one workspace lies in another, the inner one counts.
    beneath.min_by_key(|here| here.directory.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_here_only_beneath_the_workspace_of_the_runner_of_this_home() {
        let home = tempfile::tempdir().expect("a home");
        let work = tempfile::tempdir().expect("a workspace");
        let folder = work.path().join("src/app");
        fs::create_dir_all(&folder).expect("a folder");
        assert_eq!(of(home.path(), &folder), None, "no runner is enrolled");
        let runner = RunnerId::from_u128(7);
        fs::create_dir(home.path().join("runner")).expect("a folder");
        let enrolled = format!(
            "servers = [\"https://gantry.example\"]\nrunner = \"{runner}\"\nname = \"laptop\"\n\
             workspace = {:?}\n",
            work.path()
        );
        let api = work.path().join("src");
        let further = format!("[[workspaces]]\nname = \"api\"\nfolder = {api:?}\n");
        let file = home.path().join("runner/runner.toml");
        fs::write(&file, &enrolled).expect("it is written");
        let here = |workspace: Option<&str>, directory: &str| {
            Some(Here {
                runner,
                workspace: workspace.map(str::to_owned),
                directory: directory.to_owned(),
            })
        };
        assert_eq!(of(home.path(), &folder), here(None, "src/app"));
        assert_eq!(of(home.path(), work.path()), here(None, ""));
        fs::write(&file, enrolled + &further).expect("it is written");
        assert_eq!(
            of(home.path(), &folder),
            here(Some("api"), "app"),
            "the nearer one"
        );
        assert_eq!(of(home.path(), home.path()), None, "it lies elsewhere");
    }
}
