//! The tree of processes that a command becomes, and its end.
//!
//! The method that a host allows is found out by trying, strongest first. The first holds the
//! tree in a cgroup of its own, which a process cannot leave by `setsid` or by forking twice. A
//! process that may write to the host's cgroups can leave it. It still comes from the
//! supervisor, which is the tree's subreaper, and is found as its descendant.

mod cgroup;
mod names;
mod sweep;

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
};

use rustix::{
    fd::BorrowedFd,
    process::{Pid, Signal, getpgid, kill_process, kill_process_group},
};
use serde::{Deserialize, Serialize};

use cgroup::Mounts;
pub use names::{LeafNames, remove_abandoned};
pub use sweep::{descendants, members_of_session};

/// The way in which a whole tree is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KillMethod {
    /// `cgroup.kill` on a version 2 leaf that the child is born into: exact.
    CgroupKill,
    /// The supervisor, as subreaper, looks for descendants in `/proc`, stops all, then kills all,
    /// until the kernel reports that it has no child left. Then no process comes from it. It misses
    /// what it cannot see. Once it is dead itself, nothing proves that no process is left. Records of earlier
    /// releases name ways of version 1 cgroups, which count as this one.
    #[serde(alias = "freezer", alias = "pids")]
    Sweep,
}

impl KillMethod {
    /// All of them, strongest first.
    pub const ALL: [Self; 2] = [Self::CgroupKill, Self::Sweep];

    /// Its name in arguments and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CgroupKill => "cgroup-kill",
            Self::Sweep => "sweep",
        }
    }
}

/// The choice of a method.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KillChoice {
    /// The strongest that works.
    #[default]
    Strongest,
    /// This one or none.
    Only(KillMethod),
}

impl std::fmt::Display for KillChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Strongest => "strongest",
            Self::Only(method) => method.as_str(),
        })
    }
}

impl std::str::FromStr for KillChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "strongest" {
            return Ok(Self::Strongest);
        }
        KillMethod::ALL
            .into_iter()
            .find(|method| method.as_str() == text)
            .map(Self::Only)
            .ok_or_else(|| format!("there is no way to kill called {text:?}"))
    }
}

/// The places for trees on this host, and the way to kill them: read once, for many leaves.
#[derive(Debug)]
pub struct Ground {
    mounts: Mounts,
    choice: KillChoice,
}

impl Ground {
    /// Reads the hierarchies of this host.
    pub fn read(choice: KillChoice) -> Self {
        Self {
            mounts: Mounts::read(),
            choice,
        }
    }

    /// Moves this process, and so all that it forks, out of reach of a stop of the cgroup that it
    /// was started in. Where the host refuses it stays: that only matters when that whole cgroup is
    /// stopped. The move takes some milliseconds, in which the mover and every process that forks
    /// have to wait.
    pub fn step_aside(&self) {
        if self.allows(KillMethod::CgroupKill) {
            cgroup::step_aside(&self.mounts);
        }
    }

    fn allows(&self, method: KillMethod) -> bool {
        self.choice == KillChoice::Strongest || self.choice == KillChoice::Only(method)
    }
}

/// The place of one tree.
#[derive(Debug)]
pub struct Leaf {
    kind: TreeKind,
}

#[derive(Debug)]
enum TreeKind {
    V2(cgroup::V2),
    Sweep { root: Pid },
}

impl Leaf {
    /// A new place, called `name` among its kind. Where there is no cgroup the tree is what comes
    /// from this process, which must be its subreaper.
    ///
    /// # Errors
    /// When the method that must be used does not work here.
    pub fn create(ground: &Ground, name: &str) -> io::Result<Self> {
        let mounts = &ground.mounts;
        let mut last = io::Error::from(io::ErrorKind::Unsupported);
        for method in KillMethod::ALL {
            if !ground.allows(method) {
                continue;
            }
            let made = match method {
                KillMethod::CgroupKill => cgroup::V2::create(mounts, name).map(TreeKind::V2),
                KillMethod::Sweep => Ok(TreeKind::Sweep {
                    root: rustix::process::getpid(),
                }),
            };
            match made {
                Ok(kind) => return Ok(Self { kind }),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The place of a tree whose supervisor is gone; `None` where the method needed it alive, or
    /// the place is removed.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn reopen(method: KillMethod, path: Option<&Path>) -> io::Result<Option<Self>> {
        let Some(path) = path else {
            return Ok(None);
        };
        if !cgroup::is_ours(path) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let kind = match method {
            KillMethod::CgroupKill => cgroup::V2::open(path).map(TreeKind::V2),
            KillMethod::Sweep => return Ok(None),
        };
        match kind {
            Ok(kind) => Ok(Some(Self { kind })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The place of a tree without a cgroup: what comes from this process, which is its subreaper.
    pub fn below(root: Pid) -> Self {
        Self {
            kind: TreeKind::Sweep { root },
        }
    }

    /// The way in which it kills.
    pub fn method(&self) -> KillMethod {
        match &self.kind {
            TreeKind::V2(_) => KillMethod::CgroupKill,
            TreeKind::Sweep { .. } => KillMethod::Sweep,
        }
    }

    /// Its cgroup.
    pub fn path(&self) -> Option<PathBuf> {
        match &self.kind {
            TreeKind::V2(v2) => Some(v2.path().to_owned()),
            TreeKind::Sweep { .. } => None,
        }
    }

    /// The cgroup that a child can be born into.
    pub fn birthplace(&self) -> Option<BorrowedFd<'_>> {
        match &self.kind {
            TreeKind::V2(v2) => Some(v2.directory()),
            TreeKind::Sweep { .. } => None,
        }
    }

    /// Takes a child in that waits behind its gate and was not born here.
    ///
    /// # Errors
    /// When the host refuses; then it must not run.
    pub fn adopt(&self, child: Pid) -> io::Result<()> {
        match &self.kind {
            TreeKind::V2(v2) => v2.adopt(child),
            TreeKind::Sweep { .. } => Ok(()),
        }
    }

    /// Sends a signal to every process in it. A process group gets it at one moment, so that a
    /// process that is born there in that moment does not miss it. A process that begins a group of
    /// its own just then may miss it.
    pub fn signal(&self, signal: Signal) {
        let members = match &self.kind {
            TreeKind::V2(v2) => v2.members(),
            TreeKind::Sweep { root } => descendants(*root),
        };
        let members: HashSet<_> = members.unwrap_or_default().into_iter().collect();
        let (mut groups, mut others) = (HashSet::new(), Vec::new());
        for member in &members {
            // A group whose leader is elsewhere may have members elsewhere. One that is gone needs no signal.
            match getpgid(Some(*member)) {
                Ok(group) if members.contains(&group) => drop(groups.insert(group)),
                Ok(_) => others.push(*member),
                Err(_) => {}
            }
        }
        for group in groups {
            let _ = kill_process_group(group, signal);
        }
        for member in others {
            let _ = kill_process(member, signal);
        }
    }

    /// Kills every process in it; repeat it until it is empty.
    pub fn kill(&self) {
        match &self.kind {
            TreeKind::V2(v2) => v2.kill(),
            TreeKind::Sweep { root } => sweep::kill_descendants(*root),
        }
    }

    /// True if no process runs in it, as far as the method can tell.
    pub fn is_empty(&self) -> bool {
        match &self.kind {
            TreeKind::V2(v2) => v2.is_empty(),
            TreeKind::Sweep { root } => sweep::has_no_descendants(*root),
        }
    }

    /// Makes the place again for another tree, under the same name. The kernel and the cgroup
    /// itself remember what was done to a tree (a kill, a limit, cgroups below it), and the next
    /// one must not meet that. Where there is no cgroup nothing remembers it.
    ///
    /// # Errors
    /// When it is not empty, or the host refuses; then there must not be another tree.
    pub fn renew(&mut self) -> io::Result<()> {
        let Some(path) = self.path() else {
            return Ok(());
        };
        self.remove()?;
        std::fs::create_dir(&path)?;
        let anew = Self::reopen(self.method(), Some(&path))?;
        *self = anew.ok_or(io::ErrorKind::NotFound)?;
        Ok(())
    }

    /// Removes it, if it is empty.
    ///
    /// # Errors
    /// When it is not, or the host refuses.
    pub fn remove(&self) -> io::Result<()> {
        match self.path() {
            Some(path) => Ok(rustix::fs::rmdir(&path)?),
            None => Ok(()),
        }
    }
}
