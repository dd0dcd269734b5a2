//! The plan of a call: from the model's words to what is asked, before it is let through.

use std::sync::Arc;

use shared_sandbox::{Consent, Request, path_from_root};
use shared_types::{
    CallWait, Mode,
    event::{Finish, ToolCall},
};

use super::Call;
use crate::{
    tools::{ACTIVE_STEPS, AgentAsk, Ask, BadArguments, ServerAsk},
    transcript::{self, Step, Transcript},
    turn::{
        Turn, agent,
        chat::ChatScene,
        limit, seen,
        show::CallPlace,
        site::{Plan, Site, SiteServer},
    },
};

impl<'a> Call<'a> {
    /// Of the call at this place of the step, if there is one.
    pub(in crate::turn) fn plan(turn: &Turn<'a>, step: &Step, ordinal: u32) -> Option<Self> {
        let call = step.calls.get(ordinal as usize)?;
        let mut plan = planned(turn, step, ordinal, call);
        let (mut agent, mut chat, mut server) = (None, None, None);
        match plan.as_mut().ok().map(|plan| &mut plan.ask) {
            Some(Ask::Agent(ask)) => {
                let scene = agent::Scene::of(turn, step, ordinal, ask)?;
                if let AgentAsk::Begin(ask) = ask {
                    ask.worktree |= scene.wants_worktree(ask.role.as_deref());
                }
                agent = Some(scene);
            }
            Some(Ask::Chat(_)) => chat = Some(ChatScene::of(turn, step, ordinal)?),
            Some(Ask::Server(ask)) => server = site_server(turn, ask),
            _ => {}
        }
        Some(Self {
            site: site(turn, step, ordinal, (call, server)),
            plan,
            placed: call.placed.as_ref().map(|placed| placed.at),
            requested: call.requested,
            tasks_at_most: turn.transcript.tasks_at_most() + ordinal as usize,
            todo: turn.transcript.todo().into(),
            // An agent's list is its own.
            folder: match turn.transcript.brief() {
                None => turn.folder().unwrap_or_default(),
                Some(_) => String::new(),
            },
            changed: None,
            agent,
            chat,
        })
    }

    /// The call with the digest of the file that it edits, as the session has seen it, or the reason why it is not
    /// run: the session has not seen the file. To be asked once every call before it has ended.
    #[must_use]
    pub(in crate::turn) fn knowing(mut self, transcript: &Transcript) -> Self {
        let place = self.site.place;
        if let Ok(plan) = &mut self.plan
            && let Ask::Operation(prepared) = &mut plan.ask
            && let Request::Edit(edit) = &mut prepared.request
        {
            let path = path_from_root(&self.site.directory, &edit.path);
            let files = transcript.files_before(place.turn, (place.step, place.ordinal));
            match seen::expected(files, &path) {
                Ok(expected) => edit.expected = expected,
                // An earlier release placed it without asking this: it may have happened.
                Err(seen::Never) if self.placed.is_some() => {}
                Err(seen::Never) => {
                    self.plan = Err(BadArguments::new(format!(
                        "read {} first, with Read, so that the edit fits what stands there",
                        edit.path
                    )));
                }
            }
        }
        self
    }
}

/// The plan of what the model asks, or the reason why that is not run.
fn planned(
    turn: &Turn<'_>,
    step: &Step,
    ordinal: u32,
    call: &transcript::Call,
) -> Result<Plan, BadArguments> {
    if let Some(limit) = step.limit
        && call.placed.is_none()
        && call.requested.is_none()
    {
        return Err(BadArguments::new(limit::not_run_words(limit)));
    }
    let max_calls = turn.engine.limits.max_calls;
    if ordinal >= max_calls {
        return Err(BadArguments::new(format!(
            "one answer may ask for at most {max_calls} calls; ask for the others in the next one"
        )));
    }
    let is_last = ordinal as usize + 1 == step.calls.len();
    if is_last && step.finish == Finish::Length && !is_whole(&call.asked) {
        return Err(BadArguments::new(
            "your answer reached its length limit before the arguments were whole; do it in smaller parts",
        ));
    }
    let plan = match turn.changed_by_hook(step.number, ordinal) {
        Some((name, arguments)) => Plan::of(&turn.tools, &name, &arguments),
        None => Plan::of(&turn.tools, &call.asked.name, &call.asked.arguments),
    }?;
    match call.placed {
        None => active(turn, step.number, plan),
        Some(_) => Ok(plan),
    }
}

/// The plan, unless its tool has to be found first.
fn active(turn: &Turn<'_>, step: u32, plan: Plan) -> Result<Plan, BadArguments> {
    let name = plan.tool.name();
    if !turn.tools.needs_search(name) || turn.transcript.is_active(name, (turn.id, step)) {
        return Ok(plan);
    }
    Err(BadArguments::new(format!(
        "{name} was not found in the last {ACTIVE_STEPS} answers; search for it with search_tools, which shows its arguments"
    )))
}

/// The site of a call that asks this tool server, if it asks one.
fn site<'a>(
    turn: &Turn<'a>,
    step: &Step,
    ordinal: u32,
    (call, server): (&transcript::Call, Option<SiteServer>),
) -> Site<'a> {
    let is_it = |wait: &&CallWait| (wait.step, wait.ordinal) == (step.number, ordinal);
    let limits = &turn.engine.limits;
    Site {
        engine: turn.engine,
        tools: Arc::clone(&turn.tools),
        ports: turn.ports,
        cancel: turn.cancel.clone(),
        server,
        directory: Arc::clone(turn.transcript.directory()),
        epoch: turn.epoch,
        place: CallPlace {
            turn: turn.id,
            step: step.number,
            ordinal,
        },
        number: call.number,
        result_bytes: limits.result_bytes_of(step.calls.len(), turn.window),
        // The gate says under which; until then it runs under none.
        consent: Consent::Agent(Mode::Plan),
        approved: false,
        waited: turn.waited.iter().find(is_it).cloned(),
    }
}

/// The tool server that a call asks, where the session still has it.
fn site_server(turn: &Turn<'_>, ask: &ServerAsk) -> Option<SiteServer> {
    let log = turn.transcript.turn(turn.id)?;
    let mut servers = log.extensions.servers.iter();
    let declared = servers.find(|server| server.name == ask.server && server.from.trusted)?;
    Some(SiteServer {
        declared: declared.clone(),
        place: turn.server_place(),
    })
}

/// True if its arguments are JSON. Those of an answer that was cut off may end anywhere.
fn is_whole(asked: &ToolCall) -> bool {
    serde_json::from_str::<serde_json::Value>(&asked.arguments).is_ok()
}
