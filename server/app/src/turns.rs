//! The workers of turns over this server's router: the sandbox of a turn is the one that its user chose, as long as the
//! user may use that.

use std::{sync::Arc, time::Duration};

use server_agent::{
    AgentTools, Bench, BuiltIn, Engine, EngineLimits, PersonTools, TurnSandboxes, Turns,
    feed::LiveHub,
};
use server_records::SessionKey;
use server_router::{SandboxRouter, links::Links};
use server_store::{Ports, Store};
use shared_sandbox::Sandbox;
use shared_types::{Clock, TurnId, limits};
use tokio_util::task::TaskTracker;

use crate::{
    Parts,
    commits::Commits,
    fleet::{Started, TurnFleet},
    guarded::Guarded,
    isolation::IsolationPolicy,
    models::Offered,
    settings::Settings,
    tool_servers::ToolServerPool,
    web::TurnWeb,
};

/// The number of turns at once, and the times that they wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnLimits {
    /// Turns that one process carries at the same time; others have to wait for that. Those that only
    /// wait do not count.
    pub at_once: usize,
    /// Turns of one tenant's agents that one process carries at the same time.
    pub agents_at_once: usize,
    /// The time for which a turn waits for its runner or its command before it is parked.
    pub parks_after: Duration,
    /// The time for which a turn waits for a runner that went away while a call ran there.
    pub waited_for: Duration,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            at_once: 256,
            agents_at_once: 3,
            parks_after: limits::PARKS_AFTER,
            waited_for: limits::PARKED_AT_MOST,
        }
    }
}

/// Starts the work on turns.
pub(crate) fn start(
    parts: &Parts,
    started: Started,
    links: &Links,
    commits: &Commits,
    settings: &Settings,
    (offered, servers): (&Offered, &ToolServerPool),
    tasks: &TaskTracker,
) -> Turns {
    let limits = EngineLimits {
        model_window: parts.model_window,
        parked_at_most: parts.turns.waited_for,
        parks_after: parts.turns.parks_after,
        agents_at_once: parts.turns.agents_at_once,
        sessions_at_most: parts.user_limits.sessions.into(),
        ..EngineLimits::default()
    };
    let (clock, web) = (parts.clock.clone(), TurnWeb(parts.web.clone()));
    let bench = Bench {
        engine: Engine::new(
            vec![
                Arc::new(BuiltIn),
                Arc::new(PersonTools),
                Arc::new(AgentTools),
                Arc::new(web.tools()),
            ],
            Arc::new(web),
            limits,
            clock.clone(),
        )
        .with_rules(parts.rules.clone()),
        turns: parts.ports().turns(),
        models: Arc::new(offered.clone()),
        servers: Arc::new(servers.clone()),
        sandboxes: Arc::new(RoutedSandboxes {
            store: parts.store.clone(),
            ports: parts.ports(),
            links: links.clone(),
            hub: commits.hub.clone(),
            clock: clock.clone(),
            started,
            isolation: parts.isolation.clone(),
        }),
        logs: commits.logs.clone(),
        hub: commits.hub.clone(),
        clock,
        replica: parts.replica,
        runners_return_until: started.until(),
        unless_set: settings.of_operator(),
    };
    let (at_once, stop) = (parts.turns.at_once, parts.stop.clone());
    Turns::start(bench, at_once, stop, tasks)
}

/// The sandboxes of turns: the router to the runners that a turn may use.
struct RoutedSandboxes {
    store: Store,
    ports: Ports,
    links: Links,
    hub: LiveHub,
    clock: Arc<dyn Clock>,
    started: Started,
    isolation: Arc<IsolationPolicy>,
}

impl TurnSandboxes for RoutedSandboxes {
    fn of(&self, SessionKey { tenant, session }: SessionKey, turn: TurnId) -> Arc<dyn Sandbox> {
        let fleet = TurnFleet {
            store: self.store.clone(),
            hub: self.hub.clone(),
            started: self.started,
            clock: self.clock.clone(),
            isolation: self.isolation.clone(),
            tenant,
            session,
            turn,
        };
        let intents = self.ports.session_intents(tenant, session);
        let operations = self.ports.operations(tenant);
        let (links, clock) = (self.links.clone(), self.clock.clone());
        let sandbox = SandboxRouter::new(links, Arc::new(fleet), intents, operations, clock);
        Arc::new(Guarded::new(sandbox, self.store.clone(), tenant))
    }
}

#[cfg(test)]
mod tests;
