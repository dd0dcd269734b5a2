//! One tool call: from the model's words to the one end that is recorded.
//!
//! A call is run as an operation whose id is derived from the call's place in the session, so
//! that running the call again, here or on another replica, attaches to what runs already. It gets
//! a second operation only where the first one was lost and it merely reads.

mod done;
mod gate;
mod here;
mod operate;
mod plan;
mod skill;

use std::sync::Arc;

use shared_types::{SessionEvent, Timestamp, event::TodoItem};

use self::done::Times;
pub(super) use self::done::{Done, End, Left};
use super::{
    TurnError, agent,
    chat::ChatScene,
    server,
    site::{Plan, Site},
    told::not_run,
};
use crate::{
    tools::{Ask, BadArguments},
    wait::WaitingCall,
};

/// A call that waits to be run.
pub(super) struct Call<'a> {
    site: Site<'a>,
    plan: Result<Plan, BadArguments>,
    /// The time at which an earlier run of the turn placed it.
    placed: Option<Timestamp>,
    /// The time at which an earlier run of the turn sent it to a tool server.
    requested: Option<Timestamp>,
    /// Commands of the session that go on in the background, as far as the turn knows; not more.
    tasks_at_most: usize,
    /// The to-do list before the step.
    todo: Arc<[TodoItem]>,
    /// The folder to which a to-do list belongs; empty without a runner.
    folder: String,
    /// The command that a person has put in place of the model's.
    changed: Option<String>,
    /// The facts for an agent, where it begins one.
    agent: Option<agent::Scene>,
    /// The facts for another conversation, where it begins one.
    chat: Option<ChatScene>,
}

/// The point to which a call was brought.
pub(super) enum Ran {
    /// To its end.
    Ended(Box<Done>),
    /// To where it only waits. Running it again goes on from there.
    Waits(WaitingCall),
    /// To where this event was recorded. Running it again goes on from there.
    Recorded(SessionEvent),
}

impl Call<'_> {
    pub(super) async fn run(self) -> Result<Ran, TurnError> {
        if let Some(at) = self.requested {
            return Ok(self.done(server::was_sent(at), Times::default()).into());
        }
        match &self.plan {
            Ok(Plan { tool, ask }) => match ask {
                Ask::Operation(prepared) => self.operate(&**tool, prepared).await,
                Ask::Tasks(ask) => self.look_at_tasks(ask).await,
                Ask::Recall(ask) => self.recall(ask).await,
                Ask::History(ask) => self.search_history(ask).await,
                Ask::Todo(ask) => Ok(self.todo(ask).into()),
                Ask::Skill(ask) => self.load_skill(&**tool, ask).await,
                Ask::Context(ask) => self.edit_context(ask).await,
                Ask::Web(ask) => Ok(self.ask_web(ask).await?.into()),
                Ask::Agent(ask) => self.have_agent(ask).await,
                Ask::Chat(ask) => self.begin_chat(ask).await,
                Ask::FindTools(query) => Ok(self.find_tools(query).into()),
                Ask::Server(ask) => Ok(self.ask_server(ask).await?.into()),
                // The gate has its answer.
                Ask::Person(_) => Ok(self.stopped().into()),
            },
            Err(bad) => Ok(self.done(not_run(bad), Times::default()).into()),
        }
    }
}
