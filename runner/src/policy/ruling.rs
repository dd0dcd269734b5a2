//! The decision about one operation: a pure function of the policy, the request, its consent and its place.
//!
//! The policy's own mode bounds a call that no person approved, and not the agent's: the server knows rules of its users
//! that the runner does not, and could name any mode. A person's approval lifts the mode, and nothing else. What is denied
//! is denied to all.

use std::path::{Path, PathBuf};

use shared_consent::{Decision, Deed, Ruled, Terms, Verdict, judge};
use shared_sandbox::{Consent, Request};
use shared_types::{Isolation, Mode};

use super::{deeds, rules::Policy};

/// The place of an operation.
#[derive(Debug)]
pub(super) struct OperationPlace {
    /// The folder of a workspace, as the kernel knows it; nothing for a sandbox of a pool.
    pub(super) workspace: Option<PathBuf>,
    /// The absolute paths by which its root is known.
    pub(super) roots: Vec<PathBuf>,
    /// The isolation that is proved there.
    pub(super) isolation: Isolation,
    /// True for a sandbox of a pool that is to have a network.
    pub(super) has_network: bool,
}

/// The reason why a policy does not permit an operation, and the remedy. It completes "this machine's policy …".
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Forbidden {
    #[error("permits no work in {}, which lies beneath none of its roots: choose another workspace", .0.display())]
    Outside(PathBuf),
    #[error(
        "permits sandboxes no network, and this one wants it: gantry sandboxes set NAME --network none"
    )]
    Network,
    #[error("lets people and programs run nothing here (callers = false), only agents")]
    Callers,
    #[error("denies this by the rule {0}: do without it, or ask the machine's administrator")]
    Denied(String),
    #[error(
        "denies the rule {0}, and this changes a whole folder in which that may lie: change its files one by one"
    )]
    MayBeDenied(String),
    #[error("denies commands, and this one cannot be read for certain: write it plainly ({0})")]
    Unread(String),
    #[error(
        "denies paths, and this one leads out of the workspace ({0}): name it from the workspace's root"
    )]
    Astray(String),
    #[error("lets agents only read here (mode = \"plan\"), even with an approval: {0}")]
    Plan(String),
    #[error("demands that a person approves this ({0}): ask again in mode ask")]
    Unapproved(String),
    #[error(
        "demands that a person approves a command with an environment of its own: ask again in mode ask"
    )]
    Environment,
}

impl Policy {
    /// Permits the operation at this place, or says why not.
    pub(super) fn permits(
        &self,
        request: &Request,
        consent: Consent,
        place: &OperationPlace,
    ) -> Result<(), Forbidden> {
        self.permits_place(place)?;
        if consent == Consent::Caller && !self.callers {
            return Err(Forbidden::Callers);
        }
        let roots: Vec<_> = place.roots.iter().map(PathBuf::as_path).collect();
        for Ruled { rule, .. } in &self.denials {
            if deeds::may_change_beneath(request, &roots, rule) {
                return Err(Forbidden::MayBeDenied(rule.to_string()));
            }
        }
        if let Consent::Agent(_) = consent
            && self.mode < Mode::Full
            && let Request::Exec(exec) = request
            && !exec.environment.is_empty()
        {
            // A variable can make another program of a harmless one.
            return Err(Forbidden::Environment);
        }
        deeds::each(request, &roots, |deed, folder| {
            self.permits_deed(deed, folder, consent, &place.isolation)
        })
    }

    fn permits_place(&self, place: &OperationPlace) -> Result<(), Forbidden> {
        if place.has_network && !self.network {
            return Err(Forbidden::Network);
        }
        match (&place.workspace, &self.roots) {
            (Some(folder), Some(roots)) if !is_beneath(folder, roots) => {
                Err(Forbidden::Outside(folder.clone()))
            }
            _ => Ok(()),
        }
    }

    fn permits_deed(
        &self,
        deed: &Deed<'_>,
        folder: &str,
        consent: Consent,
        isolation: &Isolation,
    ) -> Result<(), Forbidden> {
        if let Deed::Read(path) | Deed::Write(path) = deed
            && leads_out(path)
            && !self.denials.is_empty()
        {
            return Err(Forbidden::Astray((*path).to_owned()));
        }
        let (mode, rules) = match consent {
            Consent::Agent(_) => (self.mode, &self.rules),
            Consent::Approved { .. } if self.mode == Mode::Plan => (Mode::Plan, &self.denials),
            Consent::Approved { .. } | Consent::Caller => (Mode::Full, &self.denials),
        };
        let verdict = judge(
            deed,
            &Terms {
                mode,
                ceiling: None,
                isolation,
                folder,
                rules,
            },
        );
        match (verdict.decision, consent) {
            (Decision::Allow, _) => Ok(()),
            // A person has read it.
            (Decision::Ask, Consent::Approved { .. }) => Ok(()),
            _ => Err(forbidden(verdict, consent)),
        }
    }
}

/// The reason why a deed with this verdict is not permitted.
fn forbidden(verdict: Verdict<'_, ()>, consent: Consent) -> Forbidden {
    // A rule that denies may also only be the reason to ask.
    if verdict.decision == Decision::Deny
        && let Some(Ruled { rule, .. }) = verdict.by
    {
        return Forbidden::Denied(rule.to_string());
    }
    match consent {
        Consent::Agent(_) => Forbidden::Unapproved(verdict.why),
        Consent::Approved { .. } => Forbidden::Plan(verdict.why),
        Consent::Caller => Forbidden::Unread(verdict.why),
    }
}

/// True if the words of the path lead out of the workspace. Behind a symbolic link it may lie there all the same, under a
/// name that no rule was held against.
fn leads_out(path: &str) -> bool {
    path.starts_with('/') || path == ".." || path.starts_with("../")
}

/// True if the folder is one of the roots, or lies beneath one.
fn is_beneath(folder: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| folder.starts_with(root))
}

#[cfg(test)]
mod tests;
