//! The event log of a session: what happened, numbered from 1, never edited
//! (docs/internals/contracts.md#d-the-event-log).
//!
//! The views of people and the model's conversation are projections of it. Each event carries its kind and
//! version. A reader keeps an event that it cannot read and skips it, so that one event never costs the rest of a
//! log. Only the engine stops at an event that it cannot read and whose kind it acts on
//! ([`SessionEvent::unreadable`]).

mod agent;
mod approval;
mod earlier;
mod extension;
mod finding;
mod offered;
mod part;
mod terms;

use std::{borrow::Cow, cmp::Ordering, fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use agent::{CallOfSession, Worktree, WorktreeState};
pub use approval::{Answer, PlannedCall, PlannedPath, Question, Unanswered};
pub use extension::{
    Extensions, Hook, HookDecision, HookEnd, HookEvent, HookHandler, Layer, Plugin, PluginCommand,
    PluginTool, Provenance, Role, ShownValue, Skill, ToolServer, ToolServerTransport,
};
pub use finding::{Finding, FindingCategory};
pub use offered::{OfferedServer, OfferedTool};
pub use part::{Origin, Part, Parts};
pub use terms::Terms;

use crate::{
    ApprovalId, Digest, Epoch, FileDigest, Isolation, Mode, OperationId, ReplicaId, RunnerId,
    SandboxId, SessionId, Timestamp, TurnId, UserId,
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

impl SessionEvent {
    /// The event, where this reader knows its kind and version.
    pub fn known(&self) -> Option<&Event> {
        match &self.body {
            EventBody::Known(event) => Some(event),
            EventBody::Unknown(_) => None,
        }
    }

    /// The kind of an event that this reader knows by its kind and yet cannot read. It is of a newer version, or
    /// has a word or a field that no writer of this version writes.
    pub fn unreadable(&self) -> Option<&str> {
        match &self.body {
            EventBody::Known(_) => None,
            EventBody::Unknown(fields) => {
                kind_of(fields).filter(|kind| Event::version_of(kind).is_some())
            }
        }
    }
}

fn kind_of(fields: &Map<String, Value>) -> Option<&str> {
    fields.get("type").and_then(Value::as_str)
}

/// An event as it is stored and sent: `{"type": …, "v": …, …}`.
#[derive(Debug, Clone, PartialEq)]
pub enum EventBody {
    /// One that this reader knows.
    Known(Event),
    /// One that this reader cannot read, kept as it is.
    Unknown(Map<String, Value>),
}

impl Serialize for EventBody {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Versioned<'a> {
            v: u32,
            #[serde(flatten)]
            event: &'a Event,
        }
        match self {
            Self::Known(event) => Versioned {
                v: event.version(),
                event,
            }
            .serialize(serializer),
            Self::Unknown(fields) => fields.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for EventBody {
    /// # Errors
    /// If it is no JSON object.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        let version = fields.get("v").and_then(Value::as_u64);
        let Some((kind, version)) = kind_of(&fields).zip(version) else {
            return Ok(Self::Unknown(fields));
        };
        let event = match Event::version_of(kind).map(|known| version.cmp(&known.into())) {
            None | Some(Ordering::Greater) => return Ok(Self::Unknown(fields)),
            Some(Ordering::Equal) => Event::deserialize(&fields),
            Some(Ordering::Less) => {
                let mut present = fields.clone();
                earlier::brought_up(kind, version, &mut present);
                Event::deserialize(&present)
            }
        };
        Ok(event.map_or(Self::Unknown(fields), Self::Known))
    }
}

impl FromStr for EventBody {
    type Err = serde_json::Error;

    /// Reads an event as deserialization does, and several times as fast. The speed matters because a log of
    /// thousands of events is read at the beginning of a turn.
    fn from_str(json: &str) -> Result<Self, Self::Err> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(rename = "type", borrow)]
            kind: Cow<'a, str>,
            v: u64,
        }
        let event = serde_json::from_str(json)
            .ok()
            .filter(|Head { kind, v }| Event::version_of(kind).map(u64::from) == Some(*v))
            .and_then(|_| serde_json::from_str(json).ok());
        match event {
            Some(event) => Ok(Self::Known(event)),
            None => serde_json::from_str(json),
        }
    }
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
        #[serde(default, skip_serializing_if = "is_zero_tokens")]
        estimated: u64,
        /// The time from the first request for the answer to its end, with every attempt, in milliseconds; absent
        /// where an earlier release recorded it.
        #[serde(default, skip_serializing_if = "is_zero_millis")]
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

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_zero_tokens(number: &u64) -> bool {
    *number == 0
}

fn is_zero_millis(number: &u64) -> bool {
    *number == 0
}

impl Event {
    /// The kinds that this reader knows, each with its version. A writer raises the version of a kind when one of
    /// its fields changes its meaning. It also does so when a field gets a value that a reader of this version
    /// does not know, such as a new outcome. The other kinds keep theirs, so that an older reader goes on reading
    /// them. A new kind or a new optional field needs no new version.
    pub const KINDS: [(&'static str, u32); 32] = [
        ("session.created", 1),
        ("input.accepted", 3),
        ("input.steered", 1),
        ("steers.taken", 1),
        ("turn.claimed", 3),
        ("answer.recorded", 2),
        ("prompt.changed", 1),
        ("place.surveyed", 1),
        ("extensions.found", 1),
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

/// A reason to stop something that its own user did not stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The key or sign-in under which it was asked for was revoked.
    CredentialRevoked,
    /// The key under which it was asked for has expired.
    CredentialExpired,
    /// Its user was removed.
    PersonRemoved,
    /// Its user may not use its runner any more: that was unshared or taken over, or the user's role lowered.
    AccessEnded,
    /// A newer message of its session took its place.
    InterruptedByMessage,
    /// The call for which it works was stopped.
    CallerStopped,
    /// A reason that a newer version gives.
    #[serde(other)]
    Other,
}

/// Writes the reason as it stands behind "stopped: ".
impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CredentialRevoked => "its key or sign-in was revoked",
            Self::CredentialExpired => "its key has expired",
            Self::PersonRemoved => "its person was removed",
            Self::AccessEnded => "its person may not use its runner any more",
            Self::InterruptedByMessage => "a newer message takes its place",
            Self::CallerStopped => "the call that it works for was stopped",
            Self::Other => "a right that it needs has ended",
        })
    }
}

/// One request of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ToolCall {
    /// The vendor's id, which its wire format wants back with the result; never our identity.
    pub vendor_id: String,
    /// The tool, as the model named it.
    pub name: String,
    /// The arguments as the model wrote them: meant to be JSON, not trusted to be.
    pub arguments: String,
    /// The vendor's own fields of the call, such as a signature of the thoughts behind it. The
    /// model that wrote them gets them back unchanged; nothing else reads them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub opaque: Map<String, Value>,
}

/// The tool through which a model calls tools that are not in its list.
pub const USE_TOOL: &str = "use_tool";

impl ToolCall {
    /// The call that is meant: of a call of [`USE_TOOL`] that of the tool that it names, else itself. It is for readers;
    /// the model gets its call back as it wrote it.
    pub fn as_meant(&self) -> Cow<'_, Self> {
        match self.through_use_tool() {
            Some((name, arguments)) => Cow::Owned(Self {
                name,
                arguments,
                ..self.clone()
            }),
            None => Cow::Borrowed(self),
        }
    }

    /// The tool and the arguments that a call of [`USE_TOOL`] names; nothing of another call, or where it names none.
    pub fn through_use_tool(&self) -> Option<(String, String)> {
        if self.name != USE_TOOL {
            return None;
        }
        let written: Value = serde_json::from_str(&self.arguments).ok()?;
        let name = written.get("name")?.as_str()?;
        let arguments = match written.get("arguments") {
            None | Some(Value::Null) => "{}".to_owned(),
            // Some models write JSON as a text.
            Some(Value::String(arguments)) => arguments.clone(),
            Some(arguments) => arguments.to_string(),
        };
        Some((name.to_owned(), arguments))
    }
}

/// Tells if the model's answer is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Finish {
    /// It is whole.
    Complete,
    /// The model ran into its own length limit.
    Length,
    /// The turn was cancelled while it spoke; calls that it had begun are not in the answer.
    Cancelled,
}

/// A limit of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum TurnLimit {
    /// The most answers of the model.
    Steps {
        /// The number.
        most: u32,
    },
    /// The most tokens that were sent and came back.
    Tokens {
        /// The number.
        most: u64,
    },
    /// The most time that the model took for its answers.
    ModelTime {
        /// The time, in milliseconds.
        most_ms: u64,
    },
    /// A limit that a newer version has.
    #[serde(other)]
    Other,
}

/// Tokens of one model call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Usage {
    /// Tokens that were sent.
    pub input: u64,
    /// Of those, tokens that the vendor had cached.
    pub cached: u64,
    /// Of those that were sent, tokens that the vendor cached now, where it asks a price of their own for it.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cache_written: u64,
    /// Tokens that came back.
    pub output: u64,
    /// Of those that came back, tokens of thoughts, where the vendor counts them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub thoughts: u64,
}

fn is_none(tokens: &u64) -> bool {
    *tokens == 0
}

/// Calls that follow one another, by their numbers in the session, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallRange {
    /// The first.
    pub first: u32,
    /// The last.
    pub last: u32,
}

/// An item of a to-do list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TodoItem {
    /// The work to be done.
    pub text: String,
    /// Its state.
    pub state: TodoState,
}

/// The state of an item of a to-do list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum TodoState {
    /// Nothing was done.
    Open,
    /// It is being done.
    Doing,
    /// It is done.
    Done,
}

/// A file with instructions for agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct InstructionFile {
    /// The file: relative to the workspace, or beginning with `~/` for one of the user of the machine.
    pub path: String,
    /// Its text, or the beginning of it.
    pub text: String,
    /// The size of the whole file, in bytes.
    pub bytes: u64,
    /// True if more of it was left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// A file with a project's rules for agents, as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProjectFile {
    /// The file, relative to the workspace.
    pub path: String,
    /// The digest of its text.
    #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[0-9a-f]{64}$"))]
    pub digest: Digest,
    /// Its text; absent if it is as in the last such event that has this path and digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// True if the session's user trusted it with this very text when it was found.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trusted: bool,
}

/// The place where an operation runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Place {
    /// The runner.
    pub runner: RunnerId,
    /// Its name at that time.
    pub runner_name: String,
    /// The sandbox on it.
    pub sandbox: SandboxId,
    /// The isolation that is proved for the sandbox.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub isolation: Isolation,
}

/// The runner on which a turn works, and where that choice comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Choice {
    /// No runner was chosen.
    #[default]
    None,
    /// The session is pinned to this runner.
    Session {
        /// The runner.
        runner: RunnerId,
        /// Its name.
        name: String,
        /// The workspace that was chosen with it; absent for its first one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
    },
    /// The session's user works on this runner.
    User {
        /// The runner.
        runner: RunnerId,
        /// Its name.
        name: String,
        /// The workspace that was chosen with it; absent for its first one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
    },
    /// The session's user has chosen no runner, and this one is the tenant's default.
    Tenant {
        /// The runner.
        runner: RunnerId,
        /// Its name.
        name: String,
        /// The workspace that was chosen with it; absent for its first one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
    },
}

impl Choice {
    /// The runner and its name, where one is active.
    pub fn runner(&self) -> Option<(RunnerId, &str)> {
        match self {
            Self::None => None,
            Self::Session { runner, name, .. }
            | Self::User { runner, name, .. }
            | Self::Tenant { runner, name, .. } => Some((*runner, name)),
        }
    }

    /// The workspace that was chosen with the runner; absent for the runner's first one.
    pub fn workspace(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Session { workspace, .. }
            | Self::User { workspace, .. }
            | Self::Tenant { workspace, .. } => workspace.as_deref(),
        }
    }

    /// The choice as people write it: `RUNNER`, or `RUNNER/WORKSPACE`.
    pub fn words(&self) -> Option<String> {
        let (_, name) = self.runner()?;
        Some(match self.workspace() {
            None => name.to_owned(),
            Some(workspace) => format!("{name}/{workspace}"),
        })
    }
}

/// The settings of a turn, without its runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TurnSettings {
    /// The model that is asked, by its name.
    pub model: String,
    /// The language of the answers; absent where the model chooses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The most model calls in the turn.
    pub steps: u32,
    /// The runner's description of itself, such as `linux/x86_64`, or `a container on linux/x86_64`; absent where
    /// no runner was active or it had not linked yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// True if the runner is the session user's own, or has a container for the user alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_runner: bool,
    /// The mode that is set; absent where the place decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The most freedom that the tenant leaves; absent where it leaves all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Mode>,
    /// The most freedom that the policy of the runner's machine leaves; absent where it leaves all. Below it no rule of
    /// the server allows a call: the machine wants a person to approve each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_ceiling: Option<Mode>,
}

/// The outcome of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum CallOutcome {
    /// It did what was asked; for a command, with any exit code.
    Completed,
    /// It could not do what was asked; the text says why.
    Failed,
    /// It was not run: no place, bad arguments, or a refusal.
    Refused,
    /// It reached a time limit of its own and was stopped.
    TimedOut,
    /// It was stopped on request.
    Cancelled,
    /// Its fate is not known; it is not run again.
    Unknown,
    /// It goes on in the background, as a task.
    Background,
}

/// A file whose content a call has seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileSeen {
    /// Its path relative to the root of the sandbox, in one form for each file: `a`, not `./a` or `b/../a`.
    pub path: String,
    /// The digest of all of it after the call; absent where the runner did not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<FileDigest>,
    /// True if the call wrote or edited it; false if it read it.
    pub changed: bool,
}

/// The reason why the model is sent less of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum LeftOutBecause {
    /// The request came near the model's window, as the server estimates it.
    NearWindow,
    /// The model refused the request as too long.
    Refused,
}

/// The reason why a conversation was compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum CompactedBecause {
    /// The request came near the model's window, as the server estimates it.
    NearWindow,
    /// The model refused the request as too long.
    Refused,
    /// A person asked for it.
    Asked,
}

/// The thing that a call waited for in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Awaited {
    /// The runner, which is away and may come back at any moment.
    Runner,
    /// The command, which still runs.
    Command,
}

/// The outcome of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum TurnOutcome {
    /// The model had nothing more to do.
    Completed,
    /// It could not go on; the reason says why.
    Failed,
    /// Someone stopped it.
    Cancelled,
    /// A newer input took its place.
    Interrupted,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended() -> SessionEvent {
        let event = Event::TurnEnded {
            turn: TurnId::from_u128(5),
            outcome: TurnOutcome::Completed,
            reason: None,
        };
        SessionEvent {
            seq: 3,
            at: Timestamp::from_micros(0),
            body: EventBody::Known(event),
        }
    }

    /// The stored form of an event's body.
    fn without_place(mut json: Value) -> Value {
        let fields = json.as_object_mut().expect("an event is an object");
        fields.retain(|name, _| !matches!(name.as_str(), "seq" | "at"));
        json
    }

    #[test]
    fn an_event_is_one_flat_object_with_kind_and_version() {
        let json = serde_json::to_value(ended()).expect("an event is JSON");
        assert_eq!(
            json,
            serde_json::json!({
                "seq": 3, "at": "1970-01-01T00:00:00.000000Z", "type": "turn.ended", "v": 1,
                "turn": "trn_00000000000000000000000005", "outcome": "completed",
            })
        );
        let body = without_place(json.clone()).to_string().parse();
        assert_eq!(body.ok(), Some(ended().body));
        assert_eq!(
            serde_json::from_value::<SessionEvent>(json).expect("it reads back"),
            ended()
        );
    }

    /// An event of version 1, and the present form of its body.
    fn brought_up(kind: &str, fields: Value) -> Value {
        let mut json = serde_json::json!({
            "type": kind, "v": 1, "turn": "trn_00000000000000000000000005",
        });
        let all = json.as_object_mut().expect("an object");
        all.extend(fields.as_object().expect("an object").clone());
        let body: EventBody = json.to_string().parse().expect("it reads");
        let again: EventBody = serde_json::from_value(json).expect("it reads");
        assert_eq!(body, again, "both ways to read it agree");
        assert!(matches!(body, EventBody::Known(_)), "{body:?}");
        serde_json::to_value(body).expect("JSON")
    }

    #[test]
    fn messages_answers_and_results_of_an_earlier_release_are_read_as_parts_in_order() {
        let text = |text: &str| serde_json::json!({ "type": "text", "text": text });
        let user = "usr_00000000000000000000000001";
        let input = brought_up(
            "input.accepted",
            serde_json::json!({ "by": user, "text": "hello" }),
        );
        assert_eq!(
            (&input["v"], &input["parts"]),
            (&3.into(), &vec![text("hello")].into())
        );
        let answer = brought_up(
            "answer.recorded",
            serde_json::json!({
                "step": 1, "model": "m", "text": "hi", "reasoning": "hm",
                "calls": [{ "vendor_id": "c", "name": "List", "arguments": "{}", "opaque": { "x": 1 } }],
                "opaque": { "before_text": "<think>", "fields": { "y": 2 } },
                "finish": "complete", "usage": { "input": 1, "cached": 0, "output": 1 },
            }),
        );
        let parts = serde_json::json!([
            { "type": "reasoning", "text": "hm" },
            { "type": "opaque", "fields": { "before_text": "<think>" } },
            text("hi"),
            { "type": "tool_call", "vendor_id": "c", "name": "List", "arguments": "{}", "opaque": { "x": 1 } },
            { "type": "opaque", "fields": { "fields": { "y": 2 } } },
        ]);
        assert_eq!((&answer["parts"], answer.get("text")), (&parts, None));
        let ended = brought_up(
            "call.ended",
            serde_json::json!({
                "step": 1, "ordinal": 0, "outcome": "completed", "text": "",
                "budget_ms": 1, "duration_ms": 1, "overran": false,
            }),
        );
        assert_eq!(ended["parts"], Value::Array(Vec::new()));
    }

    #[test]
    fn the_words_of_a_message_are_its_texts_with_its_images_described() {
        let image = Part::Image {
            digest: crate::Digest::of(b"x"),
            media_type: "image/png".to_owned(),
            bytes: 1,
        };
        let said = |text: &str| Part::Text {
            text: text.to_owned(),
        };
        let parts = Parts(vec![said("see"), image, said("this")]);
        assert_eq!(
            parts.words(),
            "see\n\n[an image: image/png, 1 bytes]\n\nthis"
        );
        assert!(matches!(Parts::text("one").words(), Cow::Borrowed("one")));
        assert_eq!(Parts::text(""), Parts::default());
    }

    #[test]
    fn a_claim_of_an_earlier_release_is_read_and_one_of_this_release_says_its_version() {
        let json = serde_json::json!({
            "seq": 3, "at": "1970-01-01T00:00:00.000000Z", "type": "turn.claimed", "v": 1,
            "turn": "trn_00000000000000000000000005", "epoch": 1,
            "replica": "rep_00000000000000000000000001", "choice": { "by": "none" },
        });
        let event: SessionEvent = serde_json::from_value(json).expect("it reads");
        let Some(Event::TurnClaimed { settings, .. }) = event.known() else {
            panic!("it is known: {event:?}");
        };
        assert_eq!(*settings, None);
        assert_eq!(event.known().map(Event::version), Some(3));
    }

    #[test]
    fn what_a_reader_cannot_read_is_kept_whole() {
        let changes = [
            ("type", Value::from("turn.teleported"), None),
            ("v", Value::from(2), Some("turn.ended")),
            ("v", Value::Null, Some("turn.ended")),
            ("outcome", Value::from("splendid"), Some("turn.ended")),
        ];
        for (field, value, unreadable) in changes {
            let mut json = serde_json::to_value(ended()).expect("an event is JSON");
            json[field] = value;
            let event: SessionEvent = serde_json::from_value(json.clone()).expect("it is kept");
            assert_eq!((event.known(), event.unreadable()), (None, unreadable));
            assert_eq!(
                serde_json::to_value(&event).expect("it is JSON again"),
                json
            );
            let stored = without_place(json);
            assert_eq!(
                stored.to_string().parse::<EventBody>().ok(),
                Some(event.body)
            );
        }
    }

    #[test]
    fn every_kind_has_a_version_of_its_own() {
        let versions = Event::KINDS.map(|(kind, _)| Event::version_of(kind));
        assert!(versions.iter().all(Option::is_some));
        assert_eq!(Event::version_of("turn.teleported"), None);
        let EventBody::Known(event) = ended().body else {
            panic!("it is known");
        };
        assert_eq!(event.version(), 1);
    }
}
