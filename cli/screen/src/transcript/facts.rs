//! The facts of a session for the line of status.

use std::collections::VecDeque;

use shared_types::{
    ApprovalId, OperationId, Timestamp, TurnId,
    event::{Question, TodoItem, Usage},
};

/// The facts of a session as they are now.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The turn that works.
    pub turn: Option<Working>,
    /// The model that is asked or that answered last; empty if none is known.
    pub model: String,
    /// The tokens of the last answer.
    pub last: Usage,
    /// The tokens that came back in the turn that works, or worked last.
    pub output: u64,
    /// The context window of the model, in tokens; absent if the loop did not tell it.
    pub window: Option<u64>,
    /// The to-do list.
    pub todo: Vec<TodoItem>,
    /// The background commands, the oldest first; at most [`MOST_TASKS`].
    pub tasks: VecDeque<Task>,
    /// The questions that wait for a person, the oldest first.
    pub asked: VecDeque<Asked>,
    /// True while the connection is lost.
    pub is_lost: bool,
}

/// The most background commands that are known at a time. Those that ended first are forgotten first.
pub const MOST_TASKS: usize = 64;

/// The most questions that are known at a time.
pub const MOST_ASKED: usize = 64;

/// The turn that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Working {
    /// The turn.
    pub turn: TurnId,
    /// The time when its message was accepted.
    pub since: Timestamp,
    /// The model call, from 1; 0 before the first one.
    pub step: u32,
    /// The thing that goes on now.
    pub activity: Activity,
}

/// The thing that goes on in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// The thing.
    pub what: Waits,
    /// The time when it began.
    pub since: Timestamp,
}

/// The thing that a turn waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waits {
    /// A worker of the server, which takes the turn up.
    Server,
    /// The model, which has not said anything yet.
    Model,
    /// The model thinks.
    Thinks,
    /// The model speaks.
    Speaks,
    /// Tool calls.
    Tool {
        /// The name of the first tool that has not ended.
        name: String,
        /// Its command, path or pattern on one line.
        about: String,
        /// The number of further calls that have not ended.
        more: usize,
    },
    /// The answer of a person.
    Person,
    /// Something that the server says, such as the wait before another request, or a runner that is away.
    Notice(String),
    /// The end of a turn that was asked to stop.
    Stop,
}

impl Waits {
    /// The words on it, such as `waiting for the model`.
    pub fn words(&self) -> String {
        match self {
            Self::Server => "waiting for the server".to_owned(),
            Self::Model => "waiting for the model".to_owned(),
            Self::Thinks => "thinking".to_owned(),
            Self::Speaks => "answering".to_owned(),
            Self::Tool { name, more: 0, .. } => format!("running {name}"),
            Self::Tool { name, more, .. } => format!("running {name} and {more} more"),
            Self::Person => "waiting for you".to_owned(),
            Self::Notice(words) => words.clone(),
            Self::Stop => "stopping".to_owned(),
        }
    }
}

/// A command in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its number in the session, from 1.
    pub number: u32,
    /// Its operation.
    pub operation: OperationId,
    /// The command, on one line.
    pub command: String,
    /// The last line that it wrote; empty if none was seen.
    pub last_line: String,
    /// Its end in words; absent while it runs.
    pub ended: Option<String>,
}

/// A question that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The approval.
    pub approval: ApprovalId,
    /// The turn that waits.
    pub turn: TurnId,
    /// The item of the call that waits.
    pub item: Option<u64>,
    /// The question, as it was asked: its texts are a stranger's.
    pub question: Question,
    /// No answer counts after this time.
    pub until: Timestamp,
}

impl Facts {
    /// The background commands that run.
    pub fn running_tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| task.ended.is_none())
    }

    /// The share of the context window that the last request and its answer fill, in percent.
    pub fn window_filled(&self) -> Option<u64> {
        let window = self.window.filter(|window| *window > 0)?;
        let used = self.last.input.saturating_add(self.last.output);
        Some((used.saturating_mul(100) / window).min(100))
    }

    pub(super) fn task(&mut self, operation: OperationId) -> Option<&mut Task> {
        self.tasks
            .iter_mut()
            .find(|task| task.operation == operation)
    }

    pub(super) fn add_task(&mut self, task: Task) {
        if self.task(task.operation).is_some() {
            return;
        }
        if self.tasks.len() >= MOST_TASKS {
            let ended = self.tasks.iter().position(|task| task.ended.is_some());
            self.tasks.remove(ended.unwrap_or(0));
        }
        self.tasks.push_back(task);
    }
}
