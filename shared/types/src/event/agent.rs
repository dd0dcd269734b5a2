//! Agents that work for a call of another session.

use serde::{Deserialize, Serialize};

use crate::{SessionId, TurnId};

/// A tool call of a session, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallOfSession {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The model call, from 1.
    pub step: u32,
    /// The place of the call in the answer, from 0.
    pub ordinal: u32,
}

/// A git worktree in which an agent works by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Worktree {
    /// The directory of the caller, in whose repository it is made, relative to the root of the workspace.
    pub of: String,
    /// Its folder, relative to the root of the workspace.
    pub path: String,
    /// Its branch.
    pub branch: String,
    /// True if a person approved that it is made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approved: bool,
}

impl Worktree {
    /// The folder with worktrees, relative to the directory of the session that a person began.
    pub const FOLDER: &'static str = ".gantry/worktrees";

    /// The worktree of this agent, for a caller that works in this directory.
    pub fn of_agent(agent: SessionId, caller: &str, approved: bool) -> Self {
        let id = agent.to_string();
        let name = format!("agent-{}", &id[id.len().saturating_sub(8)..]);
        let holder = Self::holder(caller).trim_matches('/');
        let path = match holder {
            "" => format!("{}/{name}", Self::FOLDER),
            holder => format!("{holder}/{}/{name}", Self::FOLDER),
        };
        Self {
            of: caller.to_owned(),
            path,
            branch: format!("gantry/{name}"),
            approved,
        }
    }

    /// The directory that holds all worktrees of one conversation: one below another would go with it.
    fn holder(directory: &str) -> &str {
        let (folder, directory) = (Self::FOLDER, directory.trim_matches('/'));
        match directory.find(&format!("/{folder}/")) {
            Some(end) => &directory[..end],
            None if directory.starts_with(&format!("{folder}/")) => "",
            None => directory,
        }
    }

    /// The directory in which it is settled, which is there as long as the workspace is.
    pub fn settled_in(&self) -> &str {
        Self::holder(&self.path)
    }

    /// Its folder as seen from this directory.
    pub fn seen_from(&self, directory: &str) -> String {
        let levels = directory.split('/').filter(|part| !part.is_empty()).count();
        format!("{}{}", "../".repeat(levels), self.path)
    }
}

/// The state of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum WorktreeState {
    /// It is there for a turn of the agent.
    Made,
    /// The turn has left nothing in it, and it was removed.
    Removed,
    /// It stays: it has changes, or could not be looked at.
    Kept,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worktree_of_an_agent_below_another_one_is_beside_that_ones() {
        let agent = SessionId::from_u128(0xabcd_ef01);
        let of_person = Worktree::of_agent(agent, "app", true);
        assert!(of_person.path.starts_with("app/.gantry/worktrees/agent-"));
        assert_eq!(of_person.seen_from("app"), format!("../{}", of_person.path));
        let below = Worktree::of_agent(SessionId::from_u128(7), &of_person.path, true);
        assert_eq!(below.settled_in(), "app");
        assert_eq!(below.path.matches("worktrees").count(), 1);
        let at_root = Worktree::of_agent(agent, "", false);
        assert_eq!(
            Worktree::of_agent(agent, &at_root.path, false).path,
            at_root.path
        );
        assert_eq!(at_root.settled_in(), "");
    }
}
