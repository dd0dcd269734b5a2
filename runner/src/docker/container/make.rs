//! The container that the engine makes for a specification.

use std::path::Path;

use runner_host::Account;
use runner_supervisor::KillMethod;
use shared_types::{SandboxPrivilege, SandboxSpec};

use super::{Container, SUDO_IS_FORBIDDEN};
use crate::docker::{door::Door, engine::Make, make_folder};

/// The directory where commands and relative paths begin; a volume.
pub(super) const WORKSPACE: &str = "/workspace";

/// The home of the commands' user; a volume.
pub(super) const HOME: &str = "/home/user";

/// Our own folder in a container: programs, and the folder of the operations, which is root's alone.
pub(super) const OURS: &str = "/.gantry";

/// The path of our `sudo`, where the template has it: commands find it before a `sudo` of the image.
const SUDO: &str = "/usr/local/bin/sudo";

/// Behind what a container was made for, where its commands may be root.
const WITH_SUDO: &str = " sudo";

/// The user and the group of commands.
pub(super) const ACCOUNT: Account = Account {
    uid: 1000,
    gid: 1000,
};

impl Container {
    pub(super) fn make(&self, spec: &SandboxSpec) -> Result<Make, String> {
        let around = &self.0.around;
        let template = around.template(&spec.template).ok_or_else(|| {
            let known: Vec<_> = around.template_names().collect();
            format!(
                "this runner has no template {:?}, only: {}",
                spec.template,
                known.join(", ")
            )
        })?;
        let privilege = template.privilege;
        if privilege == SandboxPrivilege::Sudo && !spec.may_sudo {
            return Err(SUDO_IS_FORBIDDEN.to_owned());
        }
        let program = |name: &str| format!("{OURS}/bin/{name}");
        let Account { uid, gid } = ACCOUNT;
        let there = |path: &Path| around.as_the_engine_sees(path);
        let mut binds = vec![
            (
                there(&around.supervisor)?,
                program("gantry-supervisor"),
                true,
            ),
            (there(&around.files)?, program("gantry-files"), true),
        ];
        let mut entry = vec![
            program("gantry-supervisor"),
            KillMethod::Sweep.as_str().to_owned(),
        ];
        let directory = match privilege {
            SandboxPrivilege::Strict => {
                let operations = format!("{OURS}/operations");
                binds.push((there(&self.operations())?, operations.clone(), false));
                entry.push("entry".to_owned());
                operations
            }
            SandboxPrivilege::Sudo => {
                let door = Door::folder(&self.0.folder);
                make_folder(&door).map_err(|error| error.to_string())?;
                binds.push((there(&door)?, format!("{OURS}/door"), true));
                binds.push((there(&around.supervisor)?, SUDO.to_owned(), true));
                entry.push("entry-with-sudo".to_owned());
                entry.push(format!("{OURS}/door/{}", Door::NAME));
                "/".to_owned()
            }
        };
        entry.extend([
            format!("{uid}:{gid}"),
            WORKSPACE.to_owned(),
            HOME.to_owned(),
        ]);
        let image = &template.image;
        let mut made_for = format!("{image} {} {:?} {binds:?}", spec.network, spec.limits);
        if privilege == SandboxPrivilege::Sudo {
            made_for.push_str(WITH_SUDO);
        }
        Ok(Make {
            sandbox: self.0.body,
            image: image.to_owned(),
            limits: spec.limits,
            network: spec.network,
            privilege,
            entry,
            directory,
            binds,
            volumes: vec![
                ("workspace", WORKSPACE.to_owned()),
                ("home", HOME.to_owned()),
            ],
            made_for,
        })
    }
}

/// The privilege that the commands of a container have, by what it was made for.
pub(super) fn privilege_of(made_for: &str) -> SandboxPrivilege {
    match made_for.ends_with(WITH_SUDO) {
        true => SandboxPrivilege::Sudo,
        false => SandboxPrivilege::Strict,
    }
}
