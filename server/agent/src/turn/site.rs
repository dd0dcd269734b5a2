//! The site of a call, and the plan that it makes.

use std::sync::Arc;

use shared_sandbox::{Consent, Operation, OperationLimits};
use shared_types::{
    CallWait, Effect, Epoch, OperationId, OperationKey, Owner, SpanId, event::ToolServer,
};
use tokio_util::sync::CancellationToken;

use super::show::CallPlace;
use crate::{
    engine::Engine,
    servers::ServerPlace,
    session::SessionPorts,
    tools::{Ask, BadArguments, Prepared, Tool, ToolSet, called},
};

/// The place of a call in its turn, and the parts that it runs with.
pub(super) struct Site<'a> {
    pub(super) engine: &'a Engine,
    /// The tools of the turn.
    pub(super) tools: Arc<ToolSet>,
    pub(super) ports: &'a SessionPorts,
    pub(super) cancel: CancellationToken,
    /// The tool server that the call asks, if it asks one.
    pub(super) server: Option<SiteServer>,
    /// The session's directory.
    pub(super) directory: Arc<str>,
    pub(super) epoch: Epoch,
    pub(super) place: CallPlace,
    /// The number of the call in the session, from 1.
    pub(super) number: u32,
    /// Longest text of its result, in bytes.
    pub(super) result_bytes: usize,
    /// The consent under which it runs.
    pub(super) consent: Consent,
    /// True if a person approved it.
    pub(super) approved: bool,
    /// The wait of the call when an earlier worker let go of the turn.
    pub(super) waited: Option<CallWait>,
}

/// A tool server, and the place where it runs if it is a program.
pub(super) struct SiteServer {
    pub(super) declared: ToolServer,
    pub(super) place: Option<ServerPlace>,
}

impl Site<'_> {
    /// The operation of an attempt at the call of this place.
    pub(super) fn operation(
        &self,
        place: CallPlace,
        attempt: u32,
        effect: Effect,
        prepared: &Prepared,
    ) -> Operation {
        let CallPlace {
            turn,
            step,
            ordinal,
        } = place;
        let owner = Owner::Session(self.ports.session);
        let key = OperationKey::Call {
            turn,
            step,
            ordinal,
            attempt,
        };
        Operation {
            id: OperationId::derive(&self.ports.scope, &owner, &key),
            owner,
            key,
            epoch: self.epoch,
            effect,
            limits: OperationLimits {
                start_within: self.engine.limits.start_within,
                run_for: prepared.run_for,
            },
            request: prepared.request.clone().of_directory(&self.directory),
            consent: self.consent,
            trace: (self.ports.trace)
                .map(|of_turn| of_turn.with(SpanId::of_tool_call(turn, step, ordinal))),
        }
    }
}

/// The tool of a call, and its request.
pub(super) struct Plan {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) ask: Ask,
}

impl Plan {
    pub(super) fn of(tools: &ToolSet, name: &str, arguments: &str) -> Result<Self, BadArguments> {
        // A call through another tool is a call of the tool that it names, with its own checks, consent and result.
        let (name, arguments) = match called(name, arguments) {
            Some((name, _)) if !tools.needs_search(&name) => {
                let tool = tools.get(&name)?;
                return Err(BadArguments::new(format!(
                    "{name} is in your list of tools; call it by its own name",
                    name = tool.name()
                )));
            }
            Some((name, arguments)) => (name, arguments),
            None => (name.to_owned(), arguments.to_owned()),
        };
        let tool = Arc::clone(tools.get(&name)?);
        let arguments = tool.check(&arguments)?;
        let ask = tool.prepare(&arguments)?;
        Ok(Self { tool, ask })
    }
}
