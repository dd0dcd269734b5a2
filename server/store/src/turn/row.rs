//! A turn as it is stored.

use serde::{Deserialize, Serialize};
use server_records::{TurnRow, TurnState, UnfinishedTurn};
use shared_types::{Epoch, event::Choice};

use crate::{
    columns::{Columns as _, word},
    database::{FromRow, Row},
};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TurnPhase {
    Queued,
    Running,
    Ended,
}

impl FromRow for TurnRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        let state = match row.word("state")? {
            TurnPhase::Queued => TurnState::Queued,
            TurnPhase::Running => {
                let epoch = Epoch(row.count("claimed_epoch")?);
                match row.maybe_time("waits_until")? {
                    Some(until) => TurnState::Waiting { epoch, until },
                    None => TurnState::Running {
                        replica: row.parsed("claimed_by")?,
                        epoch,
                        since: row.time("claimed_at")?,
                    },
                }
            }
            TurnPhase::Ended => TurnState::Ended {
                outcome: row.word("outcome")?,
                reason: row.maybe_text("reason")?,
                at: row.time("ended_at")?,
            },
        };
        Ok(Self {
            id: row.parsed("id")?,
            session: row.parsed("session_id")?,
            client_id: row.maybe_text("client_id")?,
            input_seq: row.count("input_seq")?,
            state,
            created_at: row.time("created_at")?,
            cancel_requested_at: row.maybe_time("cancel_requested_at")?,
            for_call: row.maybe_text("caller_session_id")?.is_some(),
            credential: row.maybe_parsed("credential_id")?,
            credential_until: row.maybe_time("credential_until")?,
            choice: match row.maybe_text("chosen_by")? {
                Some(_) => Some(choice(row)?),
                None => None,
            },
            settings: row.maybe_json("settings")?,
            trace: row.maybe_parsed("traceparent")?,
        })
    }
}

/// The origin of the choice of a runner.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ChosenBy {
    None,
    Session,
    User,
    Tenant,
}

/// The choice in the columns `chosen_by`, `chosen_runner_id`, `chosen_runner_name` and `chosen_workspace`.
pub(crate) fn choice(row: &Row) -> Result<Choice, sqlx::Error> {
    let runner = || row.parsed("chosen_runner_id");
    let name = || row.text("chosen_runner_name");
    let workspace = row.maybe_text("chosen_workspace")?;
    Ok(match row.word("chosen_by")? {
        ChosenBy::None => Choice::None,
        ChosenBy::Session => Choice::Session {
            runner: runner()?,
            name: name()?,
            workspace,
        },
        ChosenBy::User => Choice::User {
            runner: runner()?,
            name: name()?,
            workspace,
        },
        ChosenBy::Tenant => Choice::Tenant {
            runner: runner()?,
            name: name()?,
            workspace,
        },
    })
}

/// The stored form of the choice's origin.
pub(crate) fn chosen_by(choice: &Choice) -> String {
    word(&match choice {
        Choice::None => ChosenBy::None,
        Choice::Session { .. } => ChosenBy::Session,
        Choice::User { .. } => ChosenBy::User,
        Choice::Tenant { .. } => ChosenBy::Tenant,
    })
}

impl FromRow for UnfinishedTurn {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            tenant: row.parsed("tenant_id")?,
            session: row.parsed("session_id")?,
            turn: row.parsed("id")?,
            running: matches!(row.word("state")?, TurnPhase::Running),
        })
    }
}
