//! The workspaces of a home: `gantry-runner add-workspace`, `workspaces` and `remove-workspace`.
//!
//! The choice of the served folders is made here, on the machine, and nowhere else. The commands
//! change the home alone; a daemon that runs sees that, and notes its result.

use std::{
    fmt,
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use shared_types::limits::is_name;

use crate::home::{EnrolledHome, FIRST_WORKSPACE, Home, HomeError, Served, WorkspaceFolder};

/// Workspaces of one home, at most. The runner's first message names all of them, and has a bound.
pub(crate) const MAX_WORKSPACES: usize = 16;

/// The longest path of a workspace, in bytes.
const MAX_FOLDER_BYTES: usize = 1024;

/// The longest wait for a running daemon to take up a change.
const HEARD_WITHIN: Duration = Duration::from_secs(5);

/// The time between two looks if it has.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The reason why a workspace is not added or removed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkspaceError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("this home is not enrolled: run `gantry-runner enrol` first")]
    NotEnrolled,
    #[error(
        "{0:?} cannot name a workspace: use up to 63 of a–z, 0–9, \'-\', \'.\' and \'_\', such as --name api"
    )]
    Name(String),
    #[error("there is a workspace {name} already, {}: choose another --name", folder.display())]
    Taken { name: String, folder: PathBuf },
    #[error("{} is the workspace {name} already", folder.display())]
    SameFolder { name: String, folder: PathBuf },
    #[error("{} cannot be a workspace: {reason}", folder.display())]
    Folder { folder: PathBuf, reason: String },
    #[error(
        "a runner has at most {MAX_WORKSPACES} workspaces; first: gantry-runner remove-workspace NAME"
    )]
    Full,
    #[error("there is no workspace {name}; there are: {known}")]
    Unknown { name: String, known: String },
    #[error(
        "{FIRST_WORKSPACE} is the folder with which this runner was enrolled, and stays; to change it, enrol again: gantry-runner enrol --replace --workspace DIR"
    )]
    First,
}

/// The last words of a command.
#[derive(Debug)]
pub(crate) struct WorkspaceReport {
    done: String,
    daemon: Daemon,
}

#[derive(Debug)]
enum Daemon {
    NotRunning,
    /// The state of the workspace: served, or the reason why not; nothing where it was removed.
    Heard(Option<Served>),
    Silent,
}

/// Adds a folder to those in which operations may happen.
pub(crate) fn add(
    home: &Home,
    folder: &Path,
    name: Option<String>,
) -> Result<WorkspaceReport, WorkspaceError> {
    let folder = usable(folder)?;
    let name = match name {
        Some(name) => name,
        None => name_of(&folder),
    };
    if !is_name(&name) {
        return Err(WorkspaceError::Name(name));
    }
    let added = WorkspaceFolder { name, folder };
    let changed = home.change(|enrolled| include(enrolled, added.clone()))?;
    changed.ok_or(WorkspaceError::NotEnrolled)?;
    let WorkspaceFolder { name, folder } = added;
    Ok(WorkspaceReport {
        done: format!("workspace {name} is {}", folder.display()),
        daemon: heard(home, |served| {
            let ours = |served: &&Served| served.name == name && served.folder == folder;
            served.iter().find(ours).map(|served| Some(served.clone()))
        }),
    })
}

/// Removes one of those that were added.
pub(crate) fn remove(home: &Home, name: &str) -> Result<WorkspaceReport, WorkspaceError> {
    let changed = home.change(|enrolled| leave_out(enrolled, name))?;
    changed.ok_or(WorkspaceError::NotEnrolled)?;
    Ok(WorkspaceReport {
        done: format!("workspace {name} is removed; its folder and files stay"),
        daemon: heard(home, |served| {
            let gone = served.iter().all(|served| served.name != name);
            gone.then_some(None)
        }),
    })
}

/// All workspaces of a home.
#[derive(Debug)]
pub(crate) struct WorkspaceList {
    workspaces: Vec<WorkspaceFolder>,
    /// The state of them in the daemon, where one runs.
    served: Option<Vec<Served>>,
}

/// All workspaces of a home, the first one first.
pub(crate) fn list(home: &Home) -> Result<WorkspaceList, WorkspaceError> {
    let enrolled = home.enrolled()?.ok_or(WorkspaceError::NotEnrolled)?;
    Ok(WorkspaceList {
        workspaces: enrolled.all_workspaces().collect(),
        served: home.is_taken().then(|| home.serving()),
    })
}

/// The workspaces of a home that make sense, the first one first. The file may have been written by hand:
/// what makes none is left out, and the log says so.
pub(crate) fn usable_of(enrolled: &EnrolledHome) -> Vec<WorkspaceFolder> {
    let mut usable: Vec<WorkspaceFolder> = Vec::new();
    for workspace in enrolled.all_workspaces() {
        let WorkspaceFolder { name, folder } = &workspace;
        let wrong = if usable.is_empty() {
            // The workspace that is chosen by the runner's name alone never becomes another one.
            usable.push(workspace);
            continue;
        } else if !is_name(name) {
            "its name has other characters than a–z, 0–9, '-', '.' and '_'"
        } else if usable.iter().any(|known| known.name == *name) {
            "another one has its name"
        } else if !folder.is_absolute() || folder.as_os_str().len() > MAX_FOLDER_BYTES {
            "its folder is no absolute path of at most 1024 bytes"
        } else if usable.len() >= MAX_WORKSPACES {
            "a runner has at most 16 workspaces"
        } else {
            usable.push(workspace);
            continue;
        };
        tracing::error!(workspace.name = name, workspace = %folder.display(), "a workspace is left out: {wrong}");
    }
    usable
}

fn include(enrolled: &mut EnrolledHome, added: WorkspaceFolder) -> Result<(), WorkspaceError> {
    for known in enrolled.all_workspaces() {
        let WorkspaceFolder { name, folder } = known;
        if folder == added.folder || folder.canonicalize().is_ok_and(|real| real == added.folder) {
            return Err(WorkspaceError::SameFolder { name, folder });
        }
        if name == added.name {
            return Err(WorkspaceError::Taken { name, folder });
        }
    }
    if enrolled.workspaces.len() + 1 >= MAX_WORKSPACES {
        return Err(WorkspaceError::Full);
    }
    enrolled.workspaces.push(added);
    Ok(())
}

fn leave_out(enrolled: &mut EnrolledHome, name: &str) -> Result<(), WorkspaceError> {
    if name == FIRST_WORKSPACE {
        return Err(WorkspaceError::First);
    }
    let before = enrolled.workspaces.len();
    enrolled.workspaces.retain(|known| known.name != name);
    if enrolled.workspaces.len() == before {
        let known: Vec<_> = enrolled.all_workspaces().map(|known| known.name).collect();
        return Err(WorkspaceError::Unknown {
            name: name.to_owned(),
            known: known.join(", "),
        });
    }
    Ok(())
}

/// The folder by its own path, where it is one.
fn usable(folder: &Path) -> Result<PathBuf, WorkspaceError> {
    let refused = |reason: &str| WorkspaceError::Folder {
        folder: folder.to_owned(),
        reason: reason.to_owned(),
    };
    let real = folder.canonicalize();
    let real = real.map_err(|error| refused(&error.to_string()))?;
    if !real.is_dir() {
        return Err(refused("it is not a folder"));
    }
    match real.to_str() {
        Some(text) if text.len() <= MAX_FOLDER_BYTES => Ok(real),
        Some(_) => Err(refused("its path is too long")),
        None => Err(refused("its path is not UTF-8")),
    }
}

/// The default name of a workspace: the folder's own name, as far as that can name a workspace.
fn name_of(folder: &Path) -> String {
    let own = folder.file_name().unwrap_or_default().to_string_lossy();
    own.to_lowercase().replace(' ', "-")
}

/// Waits until a running daemon has noted the state that `is_told` looks for.
fn heard(home: &Home, is_told: impl Fn(&[Served]) -> Option<Option<Served>>) -> Daemon {
    let mut looks = HEARD_WITHIN.as_millis() / LOOK_EVERY.as_millis();
    while home.is_taken() {
        if let Some(told) = is_told(&home.serving()) {
            return Daemon::Heard(told);
        }
        if looks == 0 {
            return Daemon::Silent;
        }
        looks -= 1;
        sleep(LOOK_EVERY);
    }
    Daemon::NotRunning
}

impl fmt::Display for WorkspaceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.done)?;
        match &self.daemon {
            Daemon::NotRunning => {
                f.write_str("no daemon runs: it counts from the next `gantry-runner run`")
            }
            Daemon::Silent => f.write_str(
                "the daemon has not said yet that it counts: look at its log, or restart it (commands go on)",
            ),
            Daemon::Heard(None) => f.write_str("it counts now; commands that run there go on"),
            Daemon::Heard(Some(Served { problem: None, .. })) => f.write_str("it is served now"),
            Daemon::Heard(Some(Served { problem: Some(problem), .. })) => {
                write!(f, "it is not served: {problem}")
            }
        }
    }
}

impl fmt::Display for WorkspaceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = self.workspaces.iter().map(|known| known.name.len()).max();
        let widest = widest.unwrap_or_default();
        for (number, WorkspaceFolder { name, folder }) in self.workspaces.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{name:<widest$}  {}", folder.display())?;
            let Some(served) = &self.served else {
                continue;
            };
            match served.iter().find(|served| served.name == *name) {
                Some(Served { problem: None, .. }) => {}
                Some(Served {
                    problem: Some(problem),
                    ..
                }) => write!(f, "  (not served: {problem})")?,
                None => f.write_str("  (not served yet)")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
