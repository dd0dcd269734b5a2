//! Plans for commands in a container, whose files no process outside looks at.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use shared_sandbox::{Exec, NotStarted};

use super::{CommandPlan, Unplanned, Whereabouts, asked_for, check, put_together, words};

/// The user and the group whose rights a command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
}

/// The facts about a container that are known before a command runs there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inhabited {
    /// The directory at which relative paths begin; absolute.
    pub root: PathBuf,
    /// The complete base environment of commands.
    pub environment: BTreeMap<String, String>,
    /// The shell for scripts, absolute; `None` where the image has none.
    pub shell: Option<String>,
    /// The user and the group of commands.
    pub account: Account,
}

impl Inhabited {
    /// Plans a command in the container. Its directory is looked up there when it starts.
    ///
    /// # Errors
    /// When the request makes no sense, or cannot run in this container; either is its end.
    pub fn plan(&self, exec: &Exec) -> Result<CommandPlan, Unplanned> {
        check(exec).map_err(Unplanned::Refused)?;
        let directory = self.place(&exec.directory);
        let mut variables = asked_for(exec, &self.environment);
        variables.insert("PWD".to_owned(), directory.clone().into());
        let shell = || self.shell.as_deref().ok_or(NotStarted::MissingShell);
        let words = words(&exec.command, shell).map_err(Unplanned::NotStarted)?;
        let directory = Whereabouts::Path(directory);
        Ok(CommandPlan {
            account: Some(self.account),
            ..put_together(exec, words, variables, directory)?
        })
    }

    /// The whole container may be worked in, so that an absolute path counts as it is, and `..` leads up.
    fn place(&self, directory: &str) -> PathBuf {
        let mut place = PathBuf::from("/");
        for component in self.root.join(Path::new(directory)).components() {
            match component {
                Component::Normal(name) => place.push(name),
                Component::ParentDir => {
                    place.pop();
                }
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared_sandbox::Command;

    fn inhabited() -> Inhabited {
        Inhabited {
            root: "/workspace".into(),
            environment: BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]),
            shell: Some("/bin/sh".to_owned()),
            account: Account {
                uid: 1000,
                gid: 1000,
            },
        }
    }

    fn exec(directory: &str) -> Exec {
        Exec {
            directory: directory.to_owned(),
            ..Exec::new(Command::Shell("true".to_owned()))
        }
    }

    #[test]
    fn a_command_runs_beneath_the_root_or_where_an_absolute_path_says() {
        for (asked, place) in [
            ("", "/workspace"),
            ("src", "/workspace/src"),
            ("./src/../x", "/workspace/x"),
            ("/etc", "/etc"),
            ("../../../..", "/"),
        ] {
            let plan = inhabited().plan(&exec(asked)).expect("a plan");
            let Whereabouts::Path(directory) = plan.directory else {
                panic!("a handle of this host");
            };
            assert_eq!(directory, Path::new(place), "{asked}");
            assert_eq!(plan.account, Some(inhabited().account));
        }
    }

    #[test]
    fn an_image_without_a_shell_runs_programs_and_no_scripts() {
        let bare = Inhabited {
            shell: None,
            ..inhabited()
        };
        assert!(matches!(
            bare.plan(&exec("")),
            Err(Unplanned::NotStarted(NotStarted::MissingShell))
        ));
        let program = Exec::new(Command::Argv(vec!["/bin/true".to_owned()]));
        assert!(bare.plan(&program).is_ok());
    }
}
