//! Calls that begin an agent and wait for its end.
//!
//! The agent's turn is one like any other: a worker claims it, here or on another replica. The call needs no worker while
//! it waits, so a tree of agents never waits for itself. All that the call knows is in the log: the event that began the
//! agent, and the one that the end of the agent's turn has written. So a worker that takes the turn over begins no second
//! agent.

use std::sync::Arc;

use server_records::NewAgent;
use shared_types::{
    CallWait, Digest, Mode, SessionEvent, SessionId, Timestamp, WaitsFor,
    clean::clean_line,
    event::{CallOutcome, Extensions, Role, Terms, TurnOutcome, Worktree},
    limits::MAX_NAME_BYTES,
};

use super::{
    Turn, TurnError,
    site::Site,
    told::{self, HANDLE_BYTES, not_run},
};
use crate::{
    roles,
    session::{LogError, spoken},
    tools::{
        AgentAsk, BeginAgent, NEVER_RAN, Rendered, SEND_MESSAGE, SUB_AGENT, bounded, excerpt_of,
    },
    transcript::{AgentCall, AgentEnd, KnownAgent, Step, kept_worktree},
    wait::WaitingCall,
};

/// The facts on which a call that begins an agent depends, as the log has them.
pub(super) struct Scene {
    /// The agent that the call has begun.
    begun: Option<AgentCall>,
    /// The number of agents above the new one and with it.
    depth: u32,
    /// The agent to which the call sends a message.
    to: Option<KnownAgent>,
    /// The agents that the turn has begun, with those that calls before this one in its answer begin.
    of_turn: u32,
    /// The number of the agent in the session, from 1.
    number: u32,
    /// The roles that people brought.
    brought: Arc<Extensions>,
    /// The model of the turn.
    model: String,
    /// The terms of the turn, with the mode in which it works.
    terms: Terms,
    mode: Mode,
    /// The model calls that the turn has left.
    steps: u32,
    /// The call's part of the tokens that the turn has left.
    tokens: u64,
}

/// The point to which such a call was brought.
pub(super) enum Worked {
    /// It has just begun the agent, with this event.
    Began(SessionEvent),
    /// It waits for the agent.
    Waits(WaitingCall),
    /// It has ended. Where the result is a part of a text, the session keeps the whole of it.
    Ended(Rendered, Option<Digest>),
}

impl Scene {
    /// True if the call has begun its agent.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// True if the role of this name has its agents work in a worktree.
    pub(super) fn wants_worktree(&self, role: Option<&str>) -> bool {
        let role = role.unwrap_or(roles::GENERAL);
        roles::role(role, &self.brought).is_some_and(|role| role.worktree)
    }

    /// The time at which the call began its agent.
    pub(super) fn began_at(&self) -> Option<Timestamp> {
        self.begun.as_ref().map(|agent| agent.at)
    }

    /// Of the call at this place of the step.
    pub(super) fn of(turn: &Turn<'_>, step: &Step, ordinal: u32, ask: &AgentAsk) -> Option<Self> {
        let log = turn.transcript.turn(turn.id)?;
        let (settings, limits) = (log.settings.as_ref(), &turn.engine.limits);
        let to_begin: Vec<_> = (0..)
            .zip(&step.calls)
            .filter(|(_, call)| call.agent.is_none() && call.result.is_none())
            .map(|(place, call)| (place, call.asked.name.as_str()))
            .filter(|(_, name)| [SUB_AGENT, SEND_MESSAGE].contains(name))
            .collect();
        let before = || to_begin.iter().filter(|(place, _)| *place < ordinal);
        let new_before = before().filter(|(_, name)| *name == SUB_AGENT).count();
        let known = turn.transcript.agents();
        let most = settings.map_or(limits.max_steps, |settings| settings.steps);
        let left = log.tokens_left(limits.turn_tokens);
        Some(Self {
            begun: step.calls.get(ordinal as usize)?.agent.clone(),
            depth: turn.transcript.brief().map_or(0, |brief| brief.depth) + 1,
            to: match ask {
                AgentAsk::Begin(_) => None,
                AgentAsk::Send { to, .. } => known.iter().find(|agent| agent.name == *to).cloned(),
            },
            of_turn: (log.agents().count() + before().count()) as u32,
            number: (known.len() + new_before) as u32 + 1,
            brought: log.extensions.clone(),
            model: settings.map_or_else(String::new, |settings| settings.model.clone()),
            terms: log.terms.clone(),
            mode: log.mode(),
            steps: most.saturating_sub(log.steps.len() as u32),
            tokens: left / to_begin.len().max(1) as u64,
        })
    }
}

/// Brings the call as far as it goes.
pub(super) async fn run(
    site: &Site<'_>,
    scene: &Scene,
    ask: &AgentAsk,
) -> Result<Worked, TurnError> {
    match &scene.begun {
        Some(agent) => follow(site, agent).await,
        None if site.cancel.is_cancelled() => Ok(ended(told::cancelled(NEVER_RAN.to_owned()))),
        None => begin(site, scene, ask).await,
    }
}

async fn begin(site: &Site<'_>, scene: &Scene, ask: &AgentAsk) -> Result<Worked, TurnError> {
    let new = match fits(site, scene).and_then(|()| new(site, scene, ask)) {
        Ok(new) => new,
        Err(why) => return Ok(ended(not_run(why))),
    };
    let model = model(site, scene, &new.role).await;
    let new = NewAgent { model, ..new };
    match site.ports.log.start_agent(&new).await {
        Ok(started) => Ok(Worked::Began(started)),
        // The turn goes on without it.
        Err(LogError::Refused(why)) => Ok(ended(not_run(why))),
        Err(error) => Err(error.into()),
    }
}

/// Tells if the turn may have one more agent work for it, or why not.
fn fits(site: &Site<'_>, scene: &Scene) -> Result<(), String> {
    let limits = &site.engine.limits;
    if scene.depth > limits.agents_deep {
        return Err(format!(
            "agents begin agents at most {} deep, and you are that deep already: do this yourself",
            limits.agents_deep
        ));
    }
    if scene.of_turn >= limits.agents_of_turn {
        return Err(format!(
            "a turn begins at most {} agents, and this one has: do the rest yourself, or go on after the next message",
            limits.agents_of_turn
        ));
    }
    if scene.steps == 0 || scene.tokens == 0 {
        return Err(
            "the turn has nothing left that it could give to an agent: end, and say what is left"
                .to_owned(),
        );
    }
    Ok(())
}

fn role(scene: &Scene, ask: &BeginAgent) -> Result<Role, String> {
    let name = ask.role.as_deref().unwrap_or(roles::GENERAL);
    roles::role(name, &scene.brought).ok_or_else(|| {
        format!(
            "there is no role {:?}; the roles are {}",
            clean_line(name, 40),
            clean_line(&roles::names(&scene.brought).join(", "), 1000)
        )
    })
}

/// The model that answers in the agent: that of its role, where the user has it, else that of the turn.
async fn model(site: &Site<'_>, scene: &Scene, role: &Role) -> Option<String> {
    if let Some(model) = &role.model
        && site.ports.models.offers(model).await
    {
        return Some(model.clone());
    }
    Some(scene.model.clone()).filter(|model| !model.is_empty())
}

fn new(site: &Site<'_>, scene: &Scene, ask: &AgentAsk) -> Result<NewAgent, String> {
    let (role, session) = match ask {
        AgentAsk::Begin(ask) => (role(scene, ask)?, None),
        AgentAsk::Send { to, .. } => {
            let known = to_agent(site, scene, to)?;
            (roles::unknown(&known.role), Some(known.session))
        }
    };
    let ceiling = match roles::only_reads(&role) {
        true => Mode::Plan,
        false => scene.mode,
    };
    let place = site.place;
    let worktree = match ask {
        AgentAsk::Begin(ask) if ask.worktree && ceiling == Mode::Plan => {
            return Err(
                "an agent that only reads needs no worktree: leave isolation out".to_owned(),
            );
        }
        AgentAsk::Begin(ask) if ask.worktree => {
            let agent = SessionId::of_agent(place.turn, place.step, place.ordinal);
            Some(Worktree::of_agent(agent, &site.directory, site.approved))
        }
        _ => None,
    };
    let (name, description, prompt) = match (ask, &scene.to) {
        (AgentAsk::Send { message, .. }, Some(known)) => {
            (known.name.clone(), known.description.clone(), message)
        }
        (AgentAsk::Send { to, message }, None) => (to.clone(), String::new(), message),
        (AgentAsk::Begin(ask), _) => (
            name(&role, scene.number),
            clean_line(&ask.description, ask.description.len()),
            &ask.prompt,
        ),
    };
    Ok(NewAgent {
        turn: place.turn,
        step: place.step,
        ordinal: place.ordinal,
        session,
        name,
        description,
        prompt: prompt.clone(),
        depth: scene.depth,
        model: None,
        terms: Terms {
            unattended: scene.terms.unattended,
            mode: Some(ceiling),
            allow: scene.terms.allow.clone(),
            steps: Some(role.steps.map_or(scene.steps, |most| most.min(scene.steps))),
            ceiling: Some(ceiling),
            tokens: Some(scene.tokens),
        },
        role,
        tokens: scene.tokens,
        background: matches!(ask, AgentAsk::Begin(ask) if ask.background),
        worktree,
    })
}

/// The agent with this name, unless it takes no messages any more.
fn to_agent<'s>(site: &Site<'_>, scene: &'s Scene, name: &str) -> Result<&'s KnownAgent, String> {
    let name = clean_line(name, 64);
    let known = scene.to.as_ref().ok_or_else(|| {
        format!("this conversation has begun no agent {name}; SubAgent begins one and names it")
    })?;
    let idle = site.engine.limits.agents_idle;
    let now = site.engine.clock.now();
    match known.idle_since {
        Some(since) if since.after(idle) <= now => Err(format!(
            "the agent {name} was idle for {} and takes no more messages; begin another one with SubAgent",
            spoken(idle)
        )),
        _ => Ok(known),
    }
}

/// The name of an agent: its role and its number in the session.
fn name(role: &Role, number: u32) -> String {
    let number = format!("-{number}");
    let role = &role.name;
    let end = role.floor_char_boundary(MAX_NAME_BYTES.saturating_sub(number.len()));
    format!("{}{number}", &role[..end])
}

/// Goes on with an agent that the call has begun.
async fn follow(site: &Site<'_>, agent: &AgentCall) -> Result<Worked, TurnError> {
    if agent.background {
        return Ok(ended(Rendered::completed(format!(
            "the agent {} works in the background; its end is told before a later message",
            agent.name
        ))));
    }
    if let Some(end) = &agent.ended {
        return of_end(site, agent, end).await;
    }
    let within = site.engine.limits.agents_within;
    let until = agent.at.after(within);
    let stopped = match () {
        () if site.cancel.is_cancelled() => told::cancelled(format!(
            "cancelled: the agent {} was stopped, and what it has done stays; its conversation is {}",
            agent.name, agent.session
        )),
        () if site.engine.clock.now() >= until => Rendered::new(
            CallOutcome::TimedOut,
            format!(
                "the agent {} did not end within {} and was stopped; what it has done stays",
                agent.name,
                spoken(within)
            ),
        ),
        () => {
            let wait = CallWait {
                step: site.place.step,
                ordinal: site.place.ordinal,
                waits_for: WaitsFor::Turn(agent.turn),
                until,
                listens_until: None,
            };
            return Ok(Worked::Waits(WaitingCall::new(wait, [0, 0])));
        }
    };
    // The wish is durable before the call ends: no agent goes on without a call.
    let log = &site.ports.log;
    log.stop_agent(agent.session, agent.turn).await?;
    Ok(ended(stopped))
}

/// The result of a call whose agent has ended.
async fn of_end(site: &Site<'_>, agent: &AgentCall, end: &AgentEnd) -> Result<Worked, TurnError> {
    let rendered = words(agent, end);
    let limit = site.result_bytes;
    if rendered.text.len() <= limit {
        return Ok(ended(rendered));
    }
    let shown = bounded(&rendered.text, limit.saturating_sub(HANDLE_BYTES));
    let whole = match site.ports.log.keep_text(rendered.text.into()).await {
        Ok(whole) => whole,
        Err(LogError::Refused(_)) => {
            return Ok(ended(Rendered::new(rendered.outcome, shown)));
        }
        Err(error) => return Err(error.into()),
    };
    let text = excerpt_of(&shown, site.number);
    Ok(Worked::Ended(
        Rendered::new(rendered.outcome, text),
        Some(whole),
    ))
}

/// The outcome of the call, and all words on the end of its agent.
fn words(agent: &AgentCall, end: &AgentEnd) -> Rendered {
    let AgentCall { name, .. } = agent;
    let left = kept_worktree(end.worktree.as_ref());
    let said = match end.answer.trim() {
        "" => left.clone(),
        answer => format!("\nits last words were:\n{answer}{left}"),
    };
    let why = end.reason.as_deref().unwrap_or("no reason is known");
    match end.outcome {
        TurnOutcome::Completed if end.answer.trim().is_empty() => {
            Rendered::completed(format!("[the agent {name} ended without a word]{left}"))
        }
        TurnOutcome::Completed => Rendered::completed(format!("{}{left}", end.answer)),
        TurnOutcome::Failed => Rendered::failed(format!("the agent {name} failed: {why}{said}")),
        TurnOutcome::Cancelled | TurnOutcome::Interrupted => Rendered::failed(format!(
            "the agent {name} was stopped by a person; do not begin it again unless you are asked to{said}"
        )),
    }
}

fn ended(rendered: Rendered) -> Worked {
    Worked::Ended(rendered, None)
}
