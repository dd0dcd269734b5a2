//! Calls that the server carries out itself: those that need no sandbox.

use std::time::Duration;

use shared_types::Event;

use super::{
    Call, Done, Ran,
    done::{Beside, Times},
};
use crate::{
    tools::{
        AgentAsk, ChatAsk, ContextAsk, HistoryAsk, NEVER_RAN, RecallAsk, ServerAsk, TaskAsk,
        TodoAsk, WebAsk, found_tools, todo_rendered,
    },
    turn::{
        TurnError,
        agent::{self, Worked},
        chat::{self, Begun},
        context_edit, history, recall, server,
        task::{self, Look},
        told, web,
    },
};

impl Call<'_> {
    pub(super) async fn look_at_tasks(&self, ask: &TaskAsk) -> Result<Ran, TurnError> {
        if self.site.cancel.is_cancelled() {
            let cancelled = told::cancelled(NEVER_RAN.to_owned());
            return Ok(self.done(cancelled, Times::default()).into());
        }
        let clock = &self.site.engine.clock;
        let began = clock.monotonic();
        let looked = match task::run(&self.site, ask).await? {
            Look::Done(looked) => looked,
            Look::Waits(call) => return Ok(Ran::Waits(call)),
        };
        let budget = task::budget(&self.site, ask);
        let times = Times {
            budget,
            // To wait for all of its time is what it was to do.
            duration: clock.monotonic().saturating_sub(began).min(budget),
        };
        let beside = Beside {
            awaits: looked.awaits,
            ..Beside::default()
        };
        Ok(self.done_with(looked.rendered, times, beside).into())
    }

    /// The list is recorded with the end of the call.
    pub(super) fn todo(&self, ask: &TodoAsk) -> Done {
        let TodoAsk::Write(items) = ask else {
            return self.done(todo_rendered(&self.todo), Times::default());
        };
        let mut done = self.done(todo_rendered(items), Times::default());
        done.before = Some(Event::TodoChanged {
            turn: self.site.place.turn,
            items: items.clone(),
            place: self.folder.clone(),
            found: false,
        });
        done
    }

    /// The change is recorded with the end of the call.
    pub(super) async fn edit_context(&self, ask: &ContextAsk) -> Result<Ran, TurnError> {
        let (rendered, event) = context_edit::run(&self.site, ask).await?;
        let mut done = self.done(rendered, Times::default());
        done.before = event;
        Ok(done.into())
    }

    pub(super) async fn recall(&self, ask: &RecallAsk) -> Result<Ran, TurnError> {
        if self.site.cancel.is_cancelled() {
            let cancelled = told::cancelled(NEVER_RAN.to_owned());
            return Ok(self.done(cancelled, Times::default()).into());
        }
        let rendered = recall::run(&self.site, ask).await?;
        Ok(self.done(rendered, Times::default()).into())
    }

    pub(super) fn find_tools(&self, query: &str) -> Done {
        let tools = &self.site.tools;
        let (rendered, tools) = found_tools(tools.to_find(), query, self.site.result_bytes);
        let beside = Beside {
            tools,
            ..Beside::default()
        };
        self.done_with(rendered, Times::default(), beside)
    }

    pub(super) async fn search_history(&self, ask: &HistoryAsk) -> Result<Ran, TurnError> {
        if self.site.cancel.is_cancelled() {
            let cancelled = told::cancelled(NEVER_RAN.to_owned());
            return Ok(self.done(cancelled, Times::default()).into());
        }
        let rendered = history::run(&self.site, ask).await?;
        Ok(self.done(rendered, Times::default()).into())
    }

    pub(super) async fn have_agent(&self, ask: &AgentAsk) -> Result<Ran, TurnError> {
        // The scene was made for this ask.
        let scene = self.agent.as_ref().ok_or(TurnError::NotInLog)?;
        let (rendered, whole) = match agent::run(&self.site, scene, ask).await? {
            Worked::Began(started) => return Ok(Ran::Recorded(started)),
            Worked::Waits(call) => return Ok(Ran::Waits(call)),
            Worked::Ended(rendered, whole) => (rendered, whole),
        };
        let engine = self.site.engine;
        let began = scene.began_at();
        let times = Times {
            budget: engine.limits.agents_within,
            duration: began.map_or(Duration::ZERO, |at| engine.clock.now().since(at)),
        };
        let beside = Beside {
            whole,
            ..Beside::default()
        };
        Ok(self.done_with(rendered, times, beside).into())
    }

    pub(super) async fn begin_chat(&self, ask: &ChatAsk) -> Result<Ran, TurnError> {
        // The scene was made for this ask.
        let scene = self.chat.as_ref().ok_or(TurnError::NotInLog)?;
        match chat::run(&self.site, scene, ask).await? {
            Begun::Now(started) => Ok(Ran::Recorded(started)),
            Begun::Ended(rendered) => Ok(self.done(rendered, Times::default()).into()),
        }
    }

    pub(super) async fn ask_web(&self, ask: &WebAsk) -> Result<Done, TurnError> {
        let clock = &self.site.engine.clock;
        let began = clock.monotonic();
        let (rendered, whole) = web::run(&self.site, ask).await?;
        let times = Times {
            budget: web::WITHIN,
            // To wait for all of its time is no more than it was given.
            duration: clock.monotonic().saturating_sub(began).min(web::WITHIN),
        };
        let beside = Beside {
            whole,
            ..Beside::default()
        };
        Ok(self.done_with(rendered, times, beside))
    }

    pub(super) async fn ask_server(&self, ask: &ServerAsk) -> Result<Done, TurnError> {
        let clock = &self.site.engine.clock;
        let began = clock.monotonic();
        let server::Answered {
            rendered,
            images,
            whole,
        } = server::run(&self.site, ask).await?;
        let times = Times {
            budget: server::WITHIN,
            duration: clock.monotonic().saturating_sub(began).min(server::WITHIN),
        };
        let beside = Beside {
            whole,
            ..Beside::default()
        };
        let mut rendered = rendered;
        let mut shown = Vec::new();
        for image in images {
            rendered.image = Some(image);
            let (kept, part) = self.kept(rendered).await?;
            rendered = kept;
            shown.extend(part);
        }
        let mut done = self.done_with(rendered, times, beside);
        for image in shown {
            done.show(Some(image));
        }
        Ok(done)
    }
}
