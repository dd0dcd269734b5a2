//! The git worktree of an agent: made before a turn of the agent looks at its place, and settled when the turn ends. A
//! worktree with changes stays, and the end of the agent names it. The others are removed.
//!
//! Both are ordinary operations of the agent's turn, each with a key of its own, and their outcomes are recorded. So a
//! worker that takes the turn up makes none twice. No hook of the repository runs.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use shared_sandbox::{
    Command, Consent, Exec, ExitStatus, Operation, OperationLimits, Outcome, Request,
};
use shared_types::{
    Effect, Event, OperationId, OperationKey, Owner,
    clean::clean_line,
    event::{Worktree, WorktreeState},
    limits::WORKTREE_ORDINALS,
};
use tokio::time::Instant;

use super::{Turn, TurnError, call::End};

/// The time that the place has to take an operation.
const PLACED_WITHIN: Duration = Duration::from_secs(10);

/// The time to check the files out. A large repository takes a while.
const MADE_WITHIN: Duration = Duration::from_secs(300);

/// The time to look for changes and to remove the files.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);

/// Longest reason of a failure, in bytes.
const MAX_FAILURE: usize = 300;

/// Checks the files out, on the branch that is there or on a new one.
const MAKE: &str = r#"
git() { command git -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@"; }
command -v git >/dev/null || { echo 'git is not installed here' >&2; exit 1; }
git rev-parse --git-dir >/dev/null 2>&1 || { echo 'this folder is in no git repository' >&2; exit 1; }
git rev-parse -q --verify HEAD >/dev/null || { echo 'the repository has no commit yet' >&2; exit 1; }
[ -e "$WORKTREE/.git" ] && exit 0
for at in "${WORKTREES%/*}" "$WORKTREES" "$WORKTREES/.gitignore"
do [ -L "$at" ] && { echo "$at is a link; remove it" >&2; exit 1; }
done
mkdir -p "$WORKTREES" && { [ -e "$WORKTREES/.gitignore" ] || echo '*' > "$WORKTREES/.gitignore"; } || exit 1
git worktree prune
if git show-ref -q --verify "refs/heads/$BRANCH"
then git worktree add -q "$WORKTREE" "$BRANCH" >&2
else git worktree add -q -b "$BRANCH" "$WORKTREE" HEAD >&2
fi"#;

/// Removes the worktree and its branch if nothing would be lost: no file is changed or new, and the branch has no commit
/// of its own. Files that git ignores do not count.
const SETTLE: &str = r#"
git() { command git -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@"; }
[ -e "$WORKTREE/.git" ] || { echo removed; exit 0; }
on=$(git -C "$WORKTREE" symbolic-ref -q HEAD) && [ "$on" = "refs/heads/$BRANCH" ] &&
changed=$(git -C "$WORKTREE" status --porcelain) && [ -z "$changed" ] &&
own=$(git rev-list -n 1 "refs/heads/$BRANCH" --not --exclude="$BRANCH" --branches --remotes HEAD) && [ -z "$own" ] &&
git worktree remove "$WORKTREE" >&2 && git branch -q -D "$BRANCH" >&2 && { echo removed; exit 0; }
echo kept"#;

/// The operation of a step of the worktree's life.
struct Work {
    script: &'static str,
    /// The directory in which it runs.
    directory: String,
    ordinal: u32,
    within: Duration,
}

impl Turn<'_> {
    /// Makes the worktree of the agent, unless it is there. Returns the reason if there is none.
    pub(super) async fn make_worktree(&mut self, step: u32) -> Result<Option<String>, TurnError> {
        let Some(worktree) = self.worktree() else {
            return Ok(None);
        };
        let turn = self.transcript.turn(self.id).ok_or(TurnError::NotInLog)?;
        if matches!(
            turn.worktree,
            Some(WorktreeState::Made | WorktreeState::Kept)
        ) {
            return Ok(None);
        }
        let work = Work {
            script: MAKE,
            directory: worktree.of.clone(),
            ordinal: WORKTREE_ORDINALS[0],
            within: MADE_WITHIN,
        };
        let operation = self.worktree_operation(&worktree, &work, step);
        let id = operation.id;
        let cancel = self.cancel.clone();
        let until = Instant::now() + PLACED_WITHIN + work.within;
        let heard = tokio::select! {
            biased;
            () = cancel.cancelled() => Err("the turn was stopped".to_owned()),
            heard = self.hear_command(operation, Bytes::new(), until) => heard,
        };
        let failed = |why: &str| Ok(Some(format!("its git worktree cannot be made: {why}")));
        let (outcome, token, [_, stderr]) = match heard {
            Ok(heard) => heard,
            Err(why) => {
                self.leave_worktree(id).await;
                return failed(&why);
            }
        };
        if let Some(why) = failure(&outcome, &stderr) {
            return failed(&why);
        }
        let event = self.worktree_changed(step, worktree, WorktreeState::Made);
        self.record_worktree(event, id, outcome, token).await?;
        Ok(None)
    }

    /// Settles the worktree that was made for this turn, before the turn ends.
    pub(super) async fn settle_worktree(&mut self) -> Result<(), TurnError> {
        let Some(worktree) = self.worktree().filter(|_| self.has_worktree()) else {
            return Ok(());
        };
        let turn = self.transcript.turn(self.id).ok_or(TurnError::NotInLog)?;
        let step = u32::try_from(turn.steps.len()).unwrap_or(u32::MAX);
        // A command that goes on there would lose its folder.
        if self.transcript.running_tasks().next().is_some() {
            let event = self.worktree_changed(step, worktree, WorktreeState::Kept);
            return self.record(event).await;
        }
        let work = Work {
            script: SETTLE,
            directory: worktree.settled_in().to_owned(),
            ordinal: WORKTREE_ORDINALS[1],
            within: SETTLED_WITHIN,
        };
        let operation = self.worktree_operation(&worktree, &work, step);
        let id = operation.id;
        let until = Instant::now() + PLACED_WITHIN + work.within;
        // Also of a turn that is stopped: what it has left is to be found again.
        match self.hear_command(operation, Bytes::new(), until).await {
            Ok((outcome, token, [stdout, stderr])) => {
                let is_removed = failure(&outcome, &stderr).is_none() && stdout.trim() == "removed";
                let state = match is_removed {
                    true => WorktreeState::Removed,
                    false => WorktreeState::Kept,
                };
                let event = self.worktree_changed(step, worktree, state);
                self.record_worktree(event, id, outcome, token).await
            }
            Err(_) => {
                self.leave_worktree(id).await;
                let event = self.worktree_changed(step, worktree, WorktreeState::Kept);
                self.record(event).await
            }
        }
    }

    /// True if a worktree was made for this turn, and is not settled.
    pub(super) fn has_worktree(&self) -> bool {
        let turn = self.transcript.turn(self.id);
        turn.is_some_and(|turn| turn.worktree == Some(WorktreeState::Made))
    }

    /// The worktree of the agent that works in this session.
    pub(super) fn worktree(&self) -> Option<Worktree> {
        self.transcript.brief()?.worktree.clone()
    }

    fn worktree_changed(&self, step: u32, worktree: Worktree, state: WorktreeState) -> Event {
        Event::WorktreeChanged {
            turn: self.id,
            step,
            worktree,
            state,
        }
    }

    async fn record_worktree(
        &mut self,
        event: Event,
        operation: OperationId,
        outcome: Outcome,
        token: Option<shared_sandbox::EndToken>,
    ) -> Result<(), TurnError> {
        match token {
            Some(token) => {
                let end = End {
                    operation,
                    outcome,
                    token,
                };
                self.record_end(event, end).await
            }
            None => self.record(event).await,
        }
    }

    async fn leave_worktree(&self, operation: OperationId) {
        let _ = self.ports.sandbox.cancel(operation, self.epoch).await;
        self.ports.sandbox.leave(operation).await;
    }

    fn worktree_operation(&self, worktree: &Worktree, work: &Work, step: u32) -> Operation {
        let owner = Owner::Session(self.ports.session);
        let key = OperationKey::Call {
            turn: self.id,
            step,
            ordinal: work.ordinal,
            attempt: 0,
        };
        let path = worktree.seen_from(&work.directory);
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let request = Request::Exec(Exec {
            environment: BTreeMap::from([
                ("WORKTREE".to_owned(), path.clone()),
                ("WORKTREES".to_owned(), folder.to_owned()),
                ("BRANCH".to_owned(), worktree.branch.clone()),
            ]),
            ..Exec::new(Command::Shell(work.script.to_owned()))
        });
        let request = request.of_directory(&work.directory);
        let mode = self
            .transcript
            .turn(self.id)
            .map_or(shared_types::Mode::Plan, |turn| turn.mode());
        Operation {
            id: OperationId::derive(&self.ports.scope, &owner, &key),
            owner,
            key,
            epoch: self.epoch,
            effect: Effect::Effectful,
            limits: OperationLimits {
                start_within: PLACED_WITHIN,
                run_for: work.within,
            },
            // The call that began the agent was judged as the command that makes it.
            consent: match worktree.approved {
                true => Consent::Approved {
                    mode,
                    plan: request.digest(),
                },
                false => Consent::Agent(mode),
            },
            request,
            trace: None,
        }
    }
}

/// The reason why a command has failed, if it has.
fn failure(outcome: &Outcome, stderr: &str) -> Option<String> {
    match outcome {
        Outcome::Exited(record) if record.status == ExitStatus::Code(0) => None,
        Outcome::Exited(record) => Some(match stderr.trim().lines().last() {
            Some(last) => clean_line(last, MAX_FAILURE),
            None => record.status.to_string(),
        }),
        Outcome::Refused(refusal) => Some(refusal.to_string()),
        _ => Some("the runner answered something that was not asked".to_owned()),
    }
}
