//! Finds copies of a runner's folder, and databases that were restored from an older copy
//! (docs/internals/contracts.md#b4).
//!
//! Each time a runner proves its key, it shows the join state that it stored last and is given the next one, which
//! counts once a link has used it. So a runner may ask with the same state twice (the answer was lost on the way). But
//! a state that a link has left behind comes from a copy of the folder, or from the original after its copy came first.
//! Either way the identity is locked.
//!
//! # Why nothing that happens on the network looks like a copy
//!
//! A network delays, loses, doubles, reorders and damages its messages, for any time. None of it can lock a runner,
//! because of these five facts:
//!
//! 1. One daemon uses a folder at a time, and makes one attempt after the other. In each it receives a
//!    challenge, *then* reads its stored state, then signs both. It stores the state of the answer
//!    before it uses the token of that answer, and takes no answer to an earlier attempt.
//! 2. Challenges are numbered in the order in which the server process made them. So of two requests
//!    that a runner has signed, the later one has the higher number, however they arrive.
//! 3. The row keeps the number of the last renewal. A request whose number is not higher is *late*: it
//!    is refused, changes nothing, and may be tried again. So is a request that comes twice.
//! 4. A request with a higher number was signed after the one that was renewed last, at a time when the
//!    runner had stored at least what that one showed. If the answer to that one never arrived, the
//!    runner still shows the same state, and no link can have used the next one, whose token was in
//!    that answer. If a link has used the next one, the runner had stored it, and shows it. Neither
//!    is behind `join_state`.
//! 5. Damaged messages are not judged here. The runner's signature covers challenge, runner and state of a request, the
//!    server's covers all of the answer, and a damaged message counts as a lost one. A delayed hello shows a token
//!    whose state was used or replaced, and opens no link; that locks nothing either.
//!
//! Numbers of two processes have no order. A request may hang in one server while the runner goes to another one, or to
//! one that was started since: its number does not tell that it is late. So if the last renewal was under a challenge of
//! another process, nothing is locked at once. The server takes note of that renewal ([`JoinState::Unordered`]) and
//! refuses the request like a late one. A challenge that it makes from then on is newer than that renewal, and a state
//! that is shown under it is judged, by that server. Another server that is shown it refuses it once more: it does not
//! know what its maker knew.
//!
//! # Why a copy is found
//!
//! A copy is let in only with a challenge that is newer than the last renewal, the copy's or the original's. Each state
//! opens one link at most. So if both keep linking, one of them shows a state that a link of the other has left behind,
//! under a newer challenge. (If they call at the same moment again and again, one of them only has to try once more.)
//!
//! # A database that was restored
//!
//! It knows less than its runners. A state that is newer than everything handed out here, and was
//! signed by this server's identity key, proves that. The runner is let in and its state taken over, so
//! that copies of its folder are still found: they cannot show a newer state than the server gave them. A
//! newer state without that signature is refused, and locks nothing.

use serde_json::json;
use shared_types::{ReplicaId, RunnerId, TenantId, Timestamp};

use super::entry;
use crate::{
    Actor, Store, StoreError, audit,
    columns::{Columns as _, integer},
    database::{Row, locking, query, retried},
};

/// The step by which the epochs of all sessions are raised once the database turns out to be an older copy. It is
/// larger than the number of claims that any session had since. Runners refuse an epoch below one that they have seen.
const EPOCHS_LOST_AT_MOST: i64 = 1 << 32;

/// A join state as a runner shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownState {
    /// The state.
    pub state: u64,
    /// True if the server's signature over it was shown as well.
    pub is_ours: bool,
    /// The challenge under which it is shown.
    pub challenge: ChallengeNumber,
    /// The last renewal that was known when the challenge was made, if another process did it.
    pub known: Option<ChallengeNumber>,
}

/// The place of a challenge in the order in which challenges were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChallengeNumber {
    /// The process that made it.
    pub replica: ReplicaId,
    /// Higher than those of all that this process made before.
    pub number: u64,
}

/// The result for a join state that was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinState {
    /// The next state.
    Renewed(u64),
    /// The next state; the database did not know the one that was shown, because it is an older copy.
    WentBack(u64),
    /// Another request of the runner's under this challenge or a newer one came before.
    Late,
    /// A link has left the state behind, but another process did the last renewal, which is given here. It is not known
    /// if the request came before it. Nothing was changed.
    Unordered(ChallengeNumber),
    /// The state was never given here.
    NeverGiven,
    /// It comes from a copy. The runner is locked, from now on or already.
    Locked,
}

impl Store {
    /// Takes the join state that a runner shows and hands out the next one, or locks the runner. A lock is audited, and
    /// so is a database that is an older copy: then the epochs of all sessions are raised with it, unless
    /// `epochs_are_raised`. Without a tenant: a runner that connects is not known to belong to one yet.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], also if the runner is revoked.
    pub async fn renew_join_state(
        &self,
        runner: RunnerId,
        shown: ShownState,
        epochs_are_raised: bool,
        now: Timestamp,
    ) -> Result<JoinState, StoreError> {
        retried!({
            let mut tx = self
                .write_any("a runner that shows up is told whose it is")
                .await?;
            let row: Row = query(locking!(
                "SELECT tenant_id, join_state, offered_join_state, renewed_by_replica,
                 renewed_by_number, locked_at
             FROM runners WHERE id = $1 AND revoked_at IS NULL",
                "FOR NO KEY UPDATE"
            ))
            .bind(runner.to_string())
            .fetch_one(&mut tx)
            .await?;
            if row.maybe_time("locked_at")?.is_some() {
                return Ok(JoinState::Locked);
            }
            let tenant = row.parsed("tenant_id")?;
            let known = StoredJoinStates {
                used: row.count("join_state")?,
                offered: row.count("offered_join_state")?,
                renewed_by: match row.maybe_parsed("renewed_by_replica")? {
                    Some(replica) => Some(ChallengeNumber {
                        replica,
                        number: row.count("renewed_by_number")?,
                    }),
                    None => None,
                },
            };
            let judged = judge(&known, &shown);
            let record = match judged {
                JoinState::Late | JoinState::Unordered(_) | JoinState::NeverGiven => {
                    return Ok(judged);
                }
                JoinState::Renewed(_) => None,
                JoinState::WentBack(_) => Some("server.went_back"),
                JoinState::Locked => Some("runner.locked"),
            };
            if let Some(kind) = record {
                let detail =
                    json!({ "shown": shown.state, "known": known.offered, "used": known.used });
                let entry = entry(Actor::System, kind, runner, detail);
                audit::record(&mut tx, tenant, &entry, now).await?;
            }
            match judged {
                JoinState::Renewed(next) | JoinState::WentBack(next) => {
                    query(
                        "UPDATE runners SET join_state = $1, offered_join_state = $2,
                         renewed_by_replica = $3, renewed_by_number = $4 WHERE id = $5",
                    )
                    .bind(integer(shown.state))
                    .bind(integer(next))
                    .bind(shown.challenge.replica.to_string())
                    .bind(integer(shown.challenge.number))
                    .bind(runner.to_string())
                    .execute(&mut tx)
                    .await?;
                }
                _ => {
                    query("UPDATE runners SET locked_at = $1 WHERE id = $2")
                        .bind(now.as_micros())
                        .bind(runner.to_string())
                        .execute(&mut tx)
                        .await?;
                }
            }
            if matches!(judged, JoinState::WentBack(_)) {
                query("UPDATE runners SET went_back_at = $1, loses_unlisted = 1 WHERE id = $2")
                    .bind(now.as_micros())
                    .bind(runner.to_string())
                    .execute(&mut tx)
                    .await?;
                if !epochs_are_raised {
                    // Of all tenants: all of the database is older.
                    for raise in [
                        "UPDATE sandboxes SET epoch = epoch + $1",
                        "UPDATE sessions SET epoch = epoch + $1",
                    ] {
                        query(raise)
                            .bind(EPOCHS_LOST_AT_MOST)
                            .execute(&mut tx)
                            .await?;
                    }
                }
            }
            tx.commit().await?;
            if judged == JoinState::Locked {
                self.link_changed(runner);
            }
            Ok(judged)
        })
    }

    /// Records that a link uses the join state that its token names: older states come from copies from now on. Returns
    /// true if the state still counts, and no link has used it before. If not, or if the runner is locked, nothing is
    /// written.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn use_join_state(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        state: u64,
    ) -> Result<bool, StoreError> {
        let mut tx = self.write(tenant).await?;
        let used = query(
            "UPDATE runners SET join_state = $1
             WHERE tenant_id = $2 AND id = $3 AND offered_join_state = $1 AND join_state < $1
                 AND locked_at IS NULL",
        )
        .bind(integer(state))
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(used == 1)
    }
}

/// The join states of a runner as the row has them.
#[derive(Debug, Clone, Copy)]
struct StoredJoinStates {
    /// The highest state that a link has used, or that was shown since.
    used: u64,
    /// The newest state that was handed out: `used`, or the one behind it.
    offered: u64,
    /// The challenge of the last renewal.
    renewed_by: Option<ChallengeNumber>,
}

/// The decision about a state that is shown; see the module.
fn judge(known: &StoredJoinStates, shown: &ShownState) -> JoinState {
    let &StoredJoinStates { used, offered, .. } = known;
    let (state, challenge) = (shown.state, shown.challenge);
    let is_late = |last: ChallengeNumber| {
        last.replica == challenge.replica && challenge.number <= last.number
    };
    if known.renewed_by.is_some_and(is_late) {
        return JoinState::Late;
    }
    // A state without a successor was never given.
    let Some(next) = state
        .checked_add(1)
        .filter(|next| i64::try_from(*next).is_ok())
    else {
        return JoinState::NeverGiven;
    };
    if state > offered {
        return match shown.is_ours {
            true => JoinState::WentBack(next),
            false => JoinState::NeverGiven,
        };
    }
    if state < used {
        return match known.renewed_by {
            Some(last) if last.replica != challenge.replica && shown.known != Some(last) => {
                JoinState::Unordered(last)
            }
            _ => JoinState::Locked,
        };
    }
    // The newest one; or the one before it, whose answer was lost: no link has used it.
    JoinState::Renewed(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(replica: u128, number: u64) -> ChallengeNumber {
        ChallengeNumber {
            replica: ReplicaId::from_u128(replica),
            number,
        }
    }

    /// A state under a challenge that is newer than all others.
    fn judged(state: u64, is_ours: bool, used: u64, offered: u64) -> JoinState {
        let known = StoredJoinStates {
            used,
            offered,
            renewed_by: Some(challenge(1, 6)),
        };
        let shown = ShownState {
            state,
            is_ours,
            challenge: challenge(1, 7),
            known: None,
        };
        judge(&known, &shown)
    }

    #[test]
    fn only_a_state_that_no_link_has_left_behind_is_renewed() {
        use JoinState::{Locked, Renewed};
        for (shown, used, offered, expected, why) in [
            (0, 0, 0, Renewed(1), "the first connect"),
            (0, 0, 1, Renewed(1), "its answer was lost"),
            (1, 0, 1, Renewed(2), "it was stored, but no link came of it"),
            (1, 1, 1, Renewed(2), "the second connect"),
            (0, 1, 1, Locked, "a copy from before the first link"),
            (0, 1, 2, Locked, "the same, after the original came back"),
        ] {
            for is_ours in [true, false] {
                assert_eq!(judged(shown, is_ours, used, offered), expected, "{why}");
            }
        }
    }

    #[test]
    fn a_newer_state_than_was_given_counts_if_the_server_signed_it() {
        assert_eq!(judged(5, true, 1, 1), JoinState::WentBack(6));
        assert_eq!(judged(5, true, 1, 2), JoinState::WentBack(6));
        assert_eq!(judged(5, false, 1, 1), JoinState::NeverGiven);
        assert_eq!(judged(u64::MAX, true, 1, 1), JoinState::NeverGiven);
        let last = i64::MAX as u64;
        assert_eq!(judged(last, true, 1, 1), JoinState::NeverGiven);
    }

    #[test]
    fn what_comes_late_is_no_copy_whatever_it_shows() {
        let known = StoredJoinStates {
            used: 5,
            offered: 6,
            renewed_by: Some(challenge(1, 7)),
        };
        for state in [0, 4, 5, 6, 7] {
            for (challenge, is_late) in [
                (challenge(1, 6), true),
                (challenge(1, 7), true),
                (challenge(1, 8), false),
                (challenge(2, 0), false),
            ] {
                let shown = ShownState {
                    state,
                    is_ours: true,
                    challenge,
                    known: None,
                };
                let judged = judge(&known, &shown);
                assert_eq!(judged == JoinState::Late, is_late, "{state} {challenge:?}");
            }
        }
    }

    #[test]
    fn a_renewal_by_another_process_is_known_before_a_state_behind_it_is_a_copys() {
        let (theirs, later) = (challenge(1, 7), challenge(1, 8));
        let known = StoredJoinStates {
            used: 5,
            offered: 6,
            renewed_by: Some(theirs),
        };
        for (state, knew, expected) in [
            (4, None, JoinState::Unordered(theirs)),
            (4, Some(theirs), JoinState::Locked),
            (4, Some(later), JoinState::Unordered(theirs)),
            (5, None, JoinState::Renewed(6)),
        ] {
            let shown = ShownState {
                state,
                is_ours: true,
                challenge: challenge(2, 0),
                known: knew,
            };
            assert_eq!(judge(&known, &shown), expected, "{state} {knew:?}");
        }
    }
}
