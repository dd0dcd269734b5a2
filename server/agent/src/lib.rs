//! The engine: it carries a turn from a user's message to its one outcome.
//!
//! A turn is a short script over named phases ([`Engine::run_turn`]): project the log, decide
//! what comes next, do it, record it, again. The decision is a pure function of the log, so
//! going on after a crash is the same loop as going on after a step: there is no special path.
//!
//! The engine speaks to the world through narrow ports (session log, sandbox, live sink, model, web, tool servers,
//! hooks that are sent). It
//! names no database, no HTTP, no wire format, no vendor and no tenant.
//!
//! A session has its home here: its log (`log`), the workers that claim and carry its turns (`turn`), the turns that
//! only wait (`wait`), and its followers ([`feed`]). The workers reach the store through the ports of
//! [`server_records`], and name a session by a key that they only pass on.

mod agents;
mod bounds;
mod context;
mod engine;
mod extensions;
pub mod feed;
mod gates;
mod hooks;
mod log;
mod models;
mod prompt;
mod rewind;
mod roles;
mod servers;
mod session;
pub mod tools;
mod transcript;
mod turn;
mod wait;
mod web;

pub use agents::{Agent, AgentEnded, agents};
pub use context::{
    report::{ContextChange, ContextReport},
    tokens::tokens as estimated_tokens,
};
pub use engine::{Carried, Claim, Engine, EngineLimits};
pub use hooks::{EndAction, HookPost, HookPosts, session_end_hooks};
pub use log::LogCache;
pub use models::ModelSource;
pub use rewind::{
    Before, EarlierMessage, FileChange, NotKnown, TouchedFile, messages, touched_since,
};
pub use server_llm::{Piece, Voice};
pub use servers::{
    AskedByServer, ListedTools, NoToolServers, NobodyAsked, ServerAnswer, ServerCall,
    ServerContent, ServerFailure, ServerPlace, ServerQuestion, ToolServers,
};
pub use session::{Live, LiveSink, LogError, SessionLog, SessionPorts, Stirs};
pub use tools::{AgentTools, BuiltIn, PersonTools, Tool, ToolSet, ToolSource, WebTools};
pub use transcript::{Placed, Task, tasks};
pub use turn::{Bench, SessionModels, SessionServers, TurnError, TurnSandboxes, TurnWork, Turns};
pub use wait::WaitingCall;
pub use web::{Web, WebPage, WebResult};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
