//! The machine's own policy: the bounds of what any server may have done here.
//!
//! The server decides whether a person is asked about an agent's call. The policy has the last word: it belongs to root,
//! so that neither a server nor the daemon's own user loosens it. It is asked before an operation is accepted, and so
//! before anything is written down. What it forbids starts never; what runs already goes on.
//!
//! It is read when the daemon starts and whenever it has changed. A policy that cannot be used permits nothing.

mod deeds;
mod file;
mod hiding;
mod rules;
mod ruling;

use std::fmt;

use proto::v1;
use shared_link::{runner::Incoming, wire::mode_to_wire};
use shared_sandbox::Outcome;
use shared_types::{Mode, Refusal, RefusalCode, SandboxNetwork, SandboxSpec};
use tokio::sync::watch;

pub(crate) use self::file::PolicySource;
use self::{
    file::{Mark, PolicyFile},
    rules::Policy,
    ruling::{Forbidden, OperationPlace},
};
use crate::sandboxes::ServedSandbox;

/// The guard of a machine: the policy as it is now.
#[derive(Debug)]
pub(crate) struct Guard {
    source: PolicySource,
    found: PolicyFile,
    marks: [Option<Mark>; 2],
    /// The runner's description of itself, which tells the server the policy's mode.
    said: watch::Sender<v1::Capabilities>,
}

impl Guard {
    /// Reads the policy; `said` says its mode from now on.
    pub(crate) fn open(source: PolicySource, said: watch::Sender<v1::Capabilities>) -> Self {
        let mut guard = Self {
            found: PolicyFile::Nothing,
            marks: source.marks(),
            source,
            said,
        };
        guard.read();
        guard
    }

    /// Permits an operation that came for this sandbox.
    ///
    /// # Errors
    /// The refusal: it names the file, the reason and the remedy.
    pub(crate) fn permits(
        &mut self,
        asked: &Incoming,
        sandbox: &ServedSandbox,
    ) -> Result<(), Refusal> {
        self.read_if_changed();
        let Some(request) = &asked.request else {
            return Ok(());
        };
        match &self.found {
            PolicyFile::Nothing => Ok(()),
            PolicyFile::Policy(policy) => {
                let permitted = policy.permits(request, asked.consent, &place(sandbox));
                permitted.map_err(|why| self.refusal(&why))
            }
            PolicyFile::Broken(reason) => Err(self.refusal(&Unusable(reason))),
        }
    }

    /// Permits a sandbox of the pool.
    ///
    /// # Errors
    /// The refusal of one that wants a network where there must be none.
    pub(crate) fn permits_sandbox(&mut self, spec: &SandboxSpec) -> Result<(), Refusal> {
        self.read_if_changed();
        let wants_network = spec.network == SandboxNetwork::Open;
        match &self.found {
            PolicyFile::Policy(policy) if wants_network && !policy.network => {
                Err(self.refusal(&Forbidden::Network))
            }
            PolicyFile::Broken(reason) => Err(self.refusal(&Unusable(reason))),
            PolicyFile::Policy(_) | PolicyFile::Nothing => Ok(()),
        }
    }

    /// Leaves out of a result the texts of files that the policy denies to be read. A request that names such a file is
    /// refused; this is for those that name a folder.
    pub(crate) fn hide(&self, outcome: &mut Outcome) {
        if let PolicyFile::Policy(policy) = &self.found {
            policy.hide(outcome);
        }
    }

    /// True if the machine's policy permits sandboxes no network.
    pub(crate) fn cuts_networks(&self) -> bool {
        matches!(&self.found, PolicyFile::Policy(policy) if !policy.network)
    }

    /// Reads the policy again, also where it seems the same: two changes within one tick of the file system's clock
    /// cannot be told apart.
    pub(crate) fn read(&mut self) {
        self.marks = self.source.marks();
        self.found = self.source.read();
        let ceiling = self
            .found
            .ceiling()
            .map_or(0, |mode| mode_to_wire(mode).into());
        let changed = self.said.send_if_modified(|said| {
            let changed = said.ceiling != ceiling;
            said.ceiling = ceiling;
            changed
        });
        if changed {
            tracing::info!(policy = %ShownPolicy { source: &self.source, found: &self.found }, "the machine's policy counts");
        }
    }

    fn read_if_changed(&mut self) {
        if self.source.marks() != self.marks {
            self.read();
        }
    }

    fn refusal(&self, why: &dyn fmt::Display) -> Refusal {
        let path = self.source.path.display();
        let message = format!("this machine's policy ({path}) {why}");
        Refusal::new(RefusalCode::ForbiddenByRunnerPolicy, message)
    }
}

/// The policy of a machine in one line, for people.
pub(crate) fn shown(source: &PolicySource) -> String {
    let found = &source.read();
    ShownPolicy { source, found }.to_string()
}

impl PolicyFile {
    /// The most freedom of an agent, where there is a bound. Of a policy that cannot be used it is the least.
    fn ceiling(&self) -> Option<Mode> {
        match self {
            Self::Nothing => None,
            Self::Policy(policy) => Some(policy.mode),
            Self::Broken(_) => Some(Mode::Plan),
        }
    }
}

/// The place of an operation in this sandbox.
fn place(sandbox: &ServedSandbox) -> OperationPlace {
    match sandbox {
        ServedSandbox::Workspace(host) => {
            // One whose path the kernel does not tell lies beneath no root.
            let real = host.real_root().unwrap_or_default();
            OperationPlace {
                roots: vec![host.root().to_owned(), real.clone()],
                workspace: Some(real),
                isolation: host.isolation(),
                has_network: false,
            }
        }
        ServedSandbox::Container(container) => OperationPlace {
            workspace: None,
            roots: vec![container.root().into()],
            isolation: container.isolation(),
            has_network: container.wants_network(),
        },
    }
}

/// A policy that cannot be used, for this reason.
struct Unusable<'a>(&'a str);

impl fmt::Display for Unusable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot be used, so that nothing may run here until the machine's administrator has mended it: {}",
            self.0
        )
    }
}

struct ShownPolicy<'a> {
    source: &'a PolicySource,
    found: &'a PolicyFile,
}

impl fmt::Display for ShownPolicy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.source.path.display();
        let policy = match self.found {
            PolicyFile::Nothing => return write!(f, "none: there is no {path}"),
            PolicyFile::Broken(reason) => {
                return write!(f, "{path} cannot be used, and nothing may run: {reason}");
            }
            PolicyFile::Policy(policy) => policy,
        };
        write!(f, "{path}: agents at most in mode {}", policy.mode)?;
        if let Some(roots) = &policy.roots {
            let roots: Vec<_> = roots
                .iter()
                .map(|root| root.display().to_string())
                .collect();
            write!(f, "; work beneath {}", roots.join(", "))?;
        }
        let denied = policy.denials.len();
        let allowed = policy.rules.len() - denied;
        write!(f, "; {allowed} rules allow, {denied} deny")?;
        if !policy.network {
            f.write_str("; sandboxes without network")?;
        }
        if !policy.callers {
            f.write_str("; agents only")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
