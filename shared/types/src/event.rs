//! The event log of a session: what happened, numbered from 1, never edited
//! (docs/internals/contracts.md#d-the-event-log).
//!
//! The views of people and the model's conversation are projections of it. Each event carries its kind and
//! version. A reader keeps an event that it cannot read and skips it, so that one event never costs the rest of a
//! log. Only the engine stops at an event that it cannot read and whose kind it acts on
//! ([`SessionEvent::unreadable`]).

mod agent;
mod answer;
mod approval;
mod call;
mod context;
mod earlier;
mod extension;
mod finding;
mod kind;
mod offered;
mod part;
mod place;
mod stored;
mod terms;
mod todo;
mod turn;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use agent::{CallOfSession, Worktree, WorktreeState};
pub use answer::{Finish, ToolCall, USE_TOOL, Usage};
pub use approval::{Answer, PlannedCall, PlannedPath, Question, Unanswered};
pub use call::{Awaited, CallOutcome, FileSeen};
pub use context::{CallRange, CompactedBecause, LeftOutBecause};
pub use extension::{
    Extensions, Hook, HookDecision, HookEnd, HookEvent, HookHandler, Layer, Plugin, PluginCommand,
    PluginTool, Provenance, Role, ShownValue, Skill, ToolServer, ToolServerTransport,
};
pub use finding::{Finding, FindingCategory};
pub use offered::{OfferedServer, OfferedTool};
pub use part::{Origin, Part, Parts};
pub use place::{InstructionFile, Place, ProjectFile};
pub use stored::EventBody;
pub use terms::Terms;
pub use todo::{TodoItem, TodoState};
pub use turn::{Choice, StopReason, TurnLimit, TurnOutcome, TurnSettings};

use crate::{
    ApprovalId, Digest, Epoch, OperationId, ReplicaId, SessionId, Timestamp, TurnId, UserId,
};

/// An event at its place in a session's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionEvent {
    /// The place in the log, from 1, without gaps.
    pub seq: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// The event itself.
    #[serde(flatten)]
    pub body: EventBody,
}

/// An event in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Event {
    /// The session exists.
    #[serde(rename = "session.created")]
    SessionCreated {
        /// The title in lists; at first the beginning of the first message.
        title: String,
        /// The name of the model, and whether it is the practice model, as people see it.
        model: String,
        /// The directory in which its commands start and its paths begin, relative to the root of the sandbox;
        /// absent for the root itself.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        directory: String,
    },
    /// A user's message was accepted; it starts the turn.
    #[serde(rename = "input.accepted")]
    InputAccepted {
        /// The turn that it starts.
        turn: TurnId,
        /// The user who sent it.
        by: UserId,
        /// The client's idempotency key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<String>,
        /// The message.
        parts: Parts,
        /// Present if it asks to compact the conversation: what matters most in it, where that was said. The model is
        /// not sent such a message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        compacts: Option<String>,
        /// The terms of the message for its turn.
        #[serde(default, skip_serializing_if = "Terms::is_none")]
        terms: Terms,
    },
    /// A user's message was accepted for a turn that works already. The model is sent it before its next answer.
    #[serde(rename = "input.steered")]
    InputSteered {
        /// The turn that works.
        turn: TurnId,
        /// Its number among those of the turn, from 1.
        number: u32,
        /// The user who sent it.
        by: UserId,
        /// The client's idempotency key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<String>,
        /// The message.
        parts: Parts,
    },
    /// Messages that steer the turn have their place in the conversation from now on; recorded before the model is
    /// asked.
    #[serde(rename = "steers.taken")]
    SteersTaken {
        /// The turn.
        turn: TurnId,
        /// The model call that is sent them, from 1; 0 where they became another turn's message.
        step: u32,
        /// The number of the last of them. Those before it were taken before, or are taken now.
        through: u32,
        /// The turn whose message they became, because theirs failed before it took them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        into: Option<TurnId>,
    },
    /// A worker took the turn; more than once where an earlier worker died.
    #[serde(rename = "turn.claimed")]
    TurnClaimed {
        /// The turn.
        turn: TurnId,
        /// The epoch that fences every earlier worker.
        #[cfg_attr(feature = "openapi", schema(value_type = u64))]
        epoch: Epoch,
        /// The replica on which the worker runs.
        replica: ReplicaId,
        /// The runner of the turn's calls, as chosen when the turn was first claimed; absent where an earlier
        /// release claimed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        choice: Option<Choice>,
        /// The settings of the turn, as they were when it was first claimed; absent where an earlier release
        /// claimed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        settings: Option<TurnSettings>,
    },
    /// The model answered; committed before any of its tools starts.
    #[serde(rename = "answer.recorded")]
    AnswerRecorded {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The model that answered.
        model: String,
        /// Where the answer came from; absent where an earlier release recorded it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// The answer, in the order in which the model gave it.
        parts: Parts,
        /// Tells if the answer is whole.
        finish: Finish,
        /// The tokens that it cost.
        usage: Usage,
        /// The tokens of its request as the server estimated them; absent where an earlier release recorded it.
        #[serde(default, skip_serializing_if = "is_zero")]
        estimated: u64,
        /// The time from the first request for the answer to its end, with every attempt, in milliseconds; absent
        /// where an earlier release recorded it.
        #[serde(default, skip_serializing_if = "is_zero")]
        model_ms: u64,
        /// The limit that the turn had reached. The model was asked for a summary only, and no call in the answer is
        /// run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<TurnLimit>,
    },
    /// The text with which the system prompt begins is another from this turn on.
    #[serde(rename = "prompt.changed")]
    PromptChanged {
        /// The turn.
        turn: TurnId,
        /// The operator's text; absent for Gantry's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// The place of the turn's calls was looked at, before the model was asked.
    #[serde(rename = "place.surveyed")]
    PlaceSurveyed {
        /// The turn.
        turn: TurnId,
        /// The runner, and the isolation that is proved there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<Box<Place>>,
        /// The system, such as `Debian GNU/Linux 12 (bookworm), x86_64`; empty if it is not known.
        system: String,
        /// The absolute path of the session's directory there; empty if it is not known.
        folder: String,
        /// The branch of the git repository; absent where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// The instructions that people left there, those that count more last; absent if they are as in the last
        /// such event that has some.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<Vec<InstructionFile>>,
        /// Words on files that could not be read.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unread: Vec<String>,
        /// The file with the project's rules for agents; absent if none was found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project: Option<Box<ProjectFile>>,
    },
    /// The extensions of the session are these from this turn on.
    #[serde(rename = "extensions.found")]
    ExtensionsFound {
        /// The turn.
        turn: TurnId,
        /// All of them.
        extensions: Box<Extensions>,
    },
    /// A hook is sent to an address or a tool server; committed before it leaves. It is never sent again.
    #[serde(rename = "hook.sent")]
    HookSent {
        /// The turn.
        turn: TurnId,
        /// The event at which it runs.
        on: HookEvent,
        /// The model call, from 1; 0 before the first one.
        step: u32,
        /// The place of the call in the answer, from 0; 0 where the event is about no call.
        ordinal: u32,
        /// Its place among the hooks of the turn, from 0.
        number: u32,
    },
    /// A hook has ended; recorded before what it decides on goes on.
    #[serde(rename = "hook.ended")]
    HookEnded {
        /// The turn.
        turn: TurnId,
        /// Its end.
        end: Box<HookEnd>,
    },
    /// From here on the model is offered these tools of tool servers, and no others.
    #[serde(rename = "tools.offered")]
    ToolsOffered {
        /// The turn.
        turn: TurnId,
        /// The servers.
        servers: Vec<OfferedServer>,
    },
    /// People are asked before a call goes on; the call waits for the answer.
    #[serde(rename = "approval.asked")]
    ApprovalAsked {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The place of the call in the answer, from 0.
        ordinal: u32,
        /// The approval.
        approval: ApprovalId,
        /// The thing that people are asked.
        question: Question,
        /// The digest of the request that is approved; absent if nothing is asked of a runner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
        plan: Option<Digest>,
        /// After that no answer counts.
        until: Timestamp,
    },
    /// An approval has its outcome.
    #[serde(rename = "approval.answered")]
    ApprovalAnswered {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The place of the call in the answer, from 0.
        ordinal: u32,
        /// The approval.
        approval: ApprovalId,
        /// The outcome.
        answer: Answer,
        /// The person who answered; absent if none did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<UserId>,
        /// The name of the person.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        name: String,
    },
    /// An operation of a tool call was placed; committed before it is sent.
    #[serde(rename = "call.placed")]
    CallPlaced {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The place of the call in the answer, from 0.
        ordinal: u32,
        /// The operation.
        operation: OperationId,
        /// The place where it runs.
        place: Place,
    },
    /// A call is sent to a tool server; committed before it leaves. It is never sent again.
    #[serde(rename = "call.sent")]
    CallSent {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The place of the call in the answer, from 0.
        ordinal: u32,
        /// The tool server.
        server: String,
        /// The tool, by the server's name of it.
        tool: String,
    },
    /// A tool call ended.
    #[serde(rename = "call.ended")]
    CallEnded {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The place of the call in the answer, from 0.
        ordinal: u32,
        /// The outcome of the call.
        outcome: CallOutcome,
        /// The result as the model is given it, bounded.
        parts: Parts,
        /// True if the call did not run because no runner could take it: this ends the turn.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unplaced: bool,
        /// The task as which it goes on in the background, from 1 in each session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<u32>,
        /// The thing that the call still waited for when it ended. Asking for the same again waits on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        awaits: Option<Awaited>,
        /// The whole text, where the result is a part of it: the session keeps it, and finds it by this digest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
        whole: Option<Digest>,
        /// The time that it was given, in milliseconds.
        budget_ms: u64,
        /// The time that it took, in milliseconds.
        duration_ms: u64,
        /// True if it took longer than it was given.
        overran: bool,
        /// The file that it read, wrote or edited, where it completed that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<FileSeen>,
        /// The text in it that looks like instructions to the model, 32 at most.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        findings: Vec<Finding>,
        /// The names of the tools that it showed to the model, where it searched for tools.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<String>,
    },
    /// The to-do list of the session is this one from now on.
    #[serde(rename = "todo.changed")]
    TodoChanged {
        /// The turn.
        turn: TurnId,
        /// The whole list.
        items: Vec<TodoItem>,
        /// The name of the folder to which it belongs, on its runner; empty if no runner was active.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        place: String,
        /// True if an earlier session left it there, and no call changed it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        found: bool,
    },
    /// From here on the model is sent less of the conversation, because it is too long; recorded before the
    /// model is asked. First the results of the oldest tool calls go, then the oldest messages and answers.
    #[serde(rename = "results.left_out")]
    ResultsLeftOut {
        /// The turn.
        turn: TurnId,
        /// The model call that needs the room, from 1.
        step: u32,
        /// The number of calls of the conversation, counted from its oldest, that are sent in short.
        through: u32,
        /// The number of these that had a long result or long arguments; the others are sent as they were.
        results: u32,
        /// The number of bytes by which these became shorter.
        bytes: u64,
        /// The number of parts of the conversation, counted from its oldest, that are not sent at all. A part is
        /// a message that started a turn, an answer or a tool call with its result; a message that steers belongs to the
        /// answer behind it. The turn's own message is always sent.
        #[serde(default, skip_serializing_if = "is_zero")]
        gone: u32,
        /// Of each text of the conversation so far, at most so many bytes of its beginning and its end are
        /// sent. The results of one answer's calls share them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        longest: Option<u64>,
        /// The number of texts that became shorter by that.
        #[serde(default, skip_serializing_if = "is_zero")]
        shortened: u32,
        /// The reason.
        because: LeftOutBecause,
    },
    /// From here on the model is sent the results of these calls in short; recorded before the model is asked.
    #[serde(rename = "results.masked")]
    ResultsMasked {
        /// The turn.
        turn: TurnId,
        /// The model call that needs the room, from 1.
        step: u32,
        /// The calls.
        calls: Vec<CallRange>,
        /// The tokens of the request before, as the server estimates them.
        before: u64,
        /// The tokens of the request after, as the server estimates them.
        after: u64,
    },
    /// The model has put another text in place of a result: it is sent that from here on.
    #[serde(rename = "context.edited")]
    ContextEdited {
        /// The turn.
        turn: TurnId,
        /// The call whose result it is, by its number in the session, from 1.
        call: u32,
        /// The text; empty if the result is left out.
        text: String,
    },
    /// From here on a text stands in for the oldest parts of the conversation; recorded before the model is asked
    /// again. The parts stay in the log.
    #[serde(rename = "context.compacted")]
    ContextCompacted {
        /// The turn.
        turn: TurnId,
        /// The model call before which it was done, from 1.
        step: u32,
        /// The number of parts of the conversation, counted from its oldest, for which the text stands. A part is
        /// a message, an answer or a tool call with its result.
        gone: u32,
        /// The facts that code carried over.
        carried: String,
        /// The summary that the model wrote; empty if it wrote none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        summary: String,
        /// The reason why the model wrote none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        no_summary: Option<String>,
        /// The tokens of the request before, as the server estimates them.
        before: u64,
        /// The tokens of the request after, as the server estimates them.
        after: u64,
        /// The reason.
        because: CompactedBecause,
    },
    /// Someone asked to stop the turn.
    #[serde(rename = "cancel.requested")]
    CancelRequested {
        /// The turn.
        turn: TurnId,
        /// The user who asked, or who ended the right to the turn.
        by: UserId,
        /// The reason, where no user asked to stop this turn as such.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<StopReason>,
    },
    /// The turn ended; it has exactly one outcome.
    #[serde(rename = "turn.ended")]
    TurnEnded {
        /// The turn.
        turn: TurnId,
        /// The outcome of the turn.
        outcome: TurnOutcome,
        /// The reason where it did not complete, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person went back to before a message. From here on its turn and all later ones are no part of the
    /// conversation; they stay in the log.
    #[serde(rename = "conversation.rewound")]
    ConversationRewound {
        /// The first turn that is gone.
        turn: TurnId,
        /// The user who went back.
        by: UserId,
        /// The beginning of the message of that turn, on one line.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        before: String,
    },
    /// The truth about an operation arrived after its call had ended: as unknown, or by moving it to
    /// the background.
    #[serde(rename = "operation.settled")]
    OperationSettled {
        /// The operation.
        operation: OperationId,
        /// The end of the operation, in words for people.
        summary: String,
    },
    /// The session works as an agent for a call of another session: the second event of its log.
    #[serde(rename = "agent.briefed")]
    AgentBriefed {
        /// The call that began it.
        parent: CallOfSession,
        /// The number of agents above it and with it: 1 for the agent of a person's session.
        depth: u32,
        /// Its name, such as `explore-2`.
        name: String,
        /// Its task, in a few words.
        description: String,
        /// Its role.
        role: Box<Role>,
        /// The git worktree in which it works, if it has one of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worktree: Option<Worktree>,
    },
    /// The worktree of the agent that works here was made for a turn, or settled at its end.
    #[serde(rename = "worktree.changed")]
    WorktreeChanged {
        /// The turn.
        turn: TurnId,
        /// The model calls that the turn has made before.
        step: u32,
        /// The worktree.
        worktree: Worktree,
        /// Its state from here on.
        state: WorktreeState,
    },
    /// A call has begun another conversation of the user; committed together with that one.
    #[serde(rename = "chat.started")]
    ChatStarted {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The place of the call in the answer, from 0.
        ordinal: u32,
        /// The session of the new conversation.
        session: SessionId,
        /// Its title.
        title: String,
    },
    /// A call of another session has begun this one: the second event of its log.
    #[serde(rename = "chat.origin")]
    ChatOrigin {
        /// The call.
        parent: CallOfSession,
    },
    /// A call has begun a turn of another session, in which an agent works for it; committed together with that turn.
    #[serde(rename = "agent.started")]
    AgentStarted {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The place of the call in the answer, from 0.
        ordinal: u32,
        /// The session of the agent.
        session: SessionId,
        /// The turn in which the agent works for the call.
        agent_turn: TurnId,
        /// The name of the agent, such as `explore-2`.
        name: String,
        /// The name of its role.
        role: String,
        /// Its task, in a few words.
        description: String,
        /// True if the call does not wait for its end.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        background: bool,
        /// The most tokens that the agent may use, taken from those that the turn has left.
        tokens: u64,
    },
    /// An agent that works below this session asks people before it goes on; committed together with its question.
    #[serde(rename = "agent.asks")]
    AgentAsks {
        /// The session of the agent.
        session: SessionId,
        /// The name of the agent.
        name: String,
        /// The approval.
        approval: ApprovalId,
    },
    /// The turn in which an agent works for a call has ended; committed together with that end.
    #[serde(rename = "agent.ended")]
    AgentEnded {
        /// The turn of the call.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The place of the call in the answer, from 0.
        ordinal: u32,
        /// The session of the agent.
        session: SessionId,
        /// The turn in which it worked.
        agent_turn: TurnId,
        /// The name of the agent.
        name: String,
        /// The outcome of that turn.
        outcome: TurnOutcome,
        /// The reason where it did not complete, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The last words of the agent, bounded.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        answer: String,
        /// The model calls of the agent.
        steps: u32,
        /// The tokens that these sent and received.
        tokens: u64,
        /// The worktree with the changes that the turn has left, if it has left some.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worktree: Option<Worktree>,
    },
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}
