//! The system prompt: ordered parts, each in a file of its own. What is the same in every session stands first, and what
//! may differ between two turns stands last, so that a vendor's cache of prefixes holds.

mod base;
mod beginning;
mod directory;
mod language;
mod role;

use shared_types::TurnId;

use crate::{
    tools::ToolSet,
    transcript::{Transcript, TurnLog},
};

/// The parts, in their order.
const PARTS: &[fn(&Scene<'_>) -> Option<String>] = &[
    base::part,
    role::part,
    directory::part,
    beginning::part,
    language::part,
];

/// The facts that a part may depend on.
pub(super) struct Scene<'a> {
    transcript: &'a Transcript,
    /// The turn that asks; absent before the first one.
    turn: Option<&'a TurnLog>,
    tools: &'a ToolSet,
}

/// The system prompt of a turn.
pub(super) fn system(transcript: &Transcript, turn: TurnId, tools: &ToolSet) -> String {
    let scene = Scene {
        transcript,
        turn: transcript.turn(turn),
        tools,
    };
    PARTS.iter().filter_map(|part| part(&scene)).collect()
}
