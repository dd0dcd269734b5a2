//! The kinds of events: their names, their versions, and the turn to which each belongs.

use super::Event;
use crate::TurnId;

impl Event {
    /// The kinds that this reader knows, each with its version. A writer raises the version of a kind when one of
    /// its fields changes its meaning. It also does so when a field gets a value that a reader of this version
    /// does not know, such as a new outcome. The other kinds keep theirs, so that an older reader goes on reading
    /// them. A new kind or a new optional field needs no new version.
    pub const KINDS: [(&'static str, u32); 33] = [
        ("session.created", 1),
        ("input.accepted", 3),
        ("input.steered", 1),
        ("steers.taken", 1),
        ("turn.claimed", 3),
        ("answer.recorded", 2),
        ("prompt.changed", 1),
        ("place.surveyed", 1),
        ("extensions.found", 1),
        ("hook.sent", 1),
        ("hook.ended", 1),
        ("tools.offered", 1),
        ("approval.asked", 1),
        ("approval.answered", 1),
        ("call.placed", 1),
        ("call.sent", 1),
        ("call.ended", 2),
        ("todo.changed", 1),
        ("results.left_out", 1),
        ("results.masked", 1),
        ("context.edited", 1),
        ("context.compacted", 1),
        ("cancel.requested", 1),
        ("turn.ended", 1),
        ("conversation.rewound", 1),
        ("operation.settled", 1),
        ("agent.briefed", 1),
        ("agent.started", 1),
        ("agent.asks", 1),
        ("agent.ended", 1),
        ("worktree.changed", 1),
        ("chat.started", 1),
        ("chat.origin", 1),
    ];

    /// The version in which this reader writes and reads a kind, if it knows it.
    pub fn version_of(kind: &str) -> Option<u32> {
        let mut kinds = Self::KINDS.iter();
        kinds.find_map(|(known, version)| (*known == kind).then_some(*version))
    }

    /// The version of its kind.
    pub fn version(&self) -> u32 {
        // A test asks for that of every kind.
        Self::version_of(self.kind()).unwrap_or_default()
    }

    /// The kind, as it is stored.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::SessionCreated { .. } => "session.created",
            Self::InputAccepted { .. } => "input.accepted",
            Self::InputSteered { .. } => "input.steered",
            Self::SteersTaken { .. } => "steers.taken",
            Self::TurnClaimed { .. } => "turn.claimed",
            Self::AnswerRecorded { .. } => "answer.recorded",
            Self::PromptChanged { .. } => "prompt.changed",
            Self::PlaceSurveyed { .. } => "place.surveyed",
            Self::ExtensionsFound { .. } => "extensions.found",
            Self::HookSent { .. } => "hook.sent",
            Self::HookEnded { .. } => "hook.ended",
            Self::ToolsOffered { .. } => "tools.offered",
            Self::ApprovalAsked { .. } => "approval.asked",
            Self::ApprovalAnswered { .. } => "approval.answered",
            Self::CallPlaced { .. } => "call.placed",
            Self::CallSent { .. } => "call.sent",
            Self::CallEnded { .. } => "call.ended",
            Self::TodoChanged { .. } => "todo.changed",
            Self::ResultsLeftOut { .. } => "results.left_out",
            Self::ResultsMasked { .. } => "results.masked",
            Self::ContextEdited { .. } => "context.edited",
            Self::ContextCompacted { .. } => "context.compacted",
            Self::CancelRequested { .. } => "cancel.requested",
            Self::TurnEnded { .. } => "turn.ended",
            Self::ConversationRewound { .. } => "conversation.rewound",
            Self::OperationSettled { .. } => "operation.settled",
            Self::AgentBriefed { .. } => "agent.briefed",
            Self::AgentStarted { .. } => "agent.started",
            Self::AgentAsks { .. } => "agent.asks",
            Self::AgentEnded { .. } => "agent.ended",
            Self::WorktreeChanged { .. } => "worktree.changed",
            Self::ChatStarted { .. } => "chat.started",
            Self::ChatOrigin { .. } => "chat.origin",
        }
    }

    /// The turn that it belongs to. A step back belongs to none: it happens between two turns.
    pub fn turn(&self) -> Option<TurnId> {
        match self {
            Self::SessionCreated { .. }
            | Self::ConversationRewound { .. }
            | Self::OperationSettled { .. }
            | Self::AgentBriefed { .. }
            | Self::ChatOrigin { .. }
            | Self::AgentAsks { .. } => None,
            Self::InputAccepted { turn, .. }
            | Self::InputSteered { turn, .. }
            | Self::SteersTaken { turn, .. }
            | Self::TurnClaimed { turn, .. }
            | Self::AnswerRecorded { turn, .. }
            | Self::PromptChanged { turn, .. }
            | Self::PlaceSurveyed { turn, .. }
            | Self::ExtensionsFound { turn, .. }
            | Self::HookSent { turn, .. }
            | Self::HookEnded { turn, .. }
            | Self::ToolsOffered { turn, .. }
            | Self::ApprovalAsked { turn, .. }
            | Self::ApprovalAnswered { turn, .. }
            | Self::CallPlaced { turn, .. }
            | Self::CallSent { turn, .. }
            | Self::CallEnded { turn, .. }
            | Self::TodoChanged { turn, .. }
            | Self::ResultsLeftOut { turn, .. }
            | Self::ResultsMasked { turn, .. }
            | Self::ContextEdited { turn, .. }
            | Self::ContextCompacted { turn, .. }
            | Self::CancelRequested { turn, .. }
            | Self::AgentStarted { turn, .. }
            | Self::AgentEnded { turn, .. }
            | Self::WorktreeChanged { turn, .. }
            | Self::ChatStarted { turn, .. }
            | Self::TurnEnded { turn, .. } => Some(*turn),
        }
    }
}
