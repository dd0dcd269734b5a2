//! The tools that the model may ask for: one file per tool.
//!
//! A tool is a pure translation: arguments become one request to the sandbox, and what became of
//! the request becomes a text for the model; or they become a question about the session's tasks.
//! It runs nothing, and so knows nothing of journals, runners, cancelling or time.

mod arguments;
mod edit;
mod excerpt;
mod glob;
mod grep;
mod lines;
mod list;
mod output;
mod read;
mod shell;
mod tasks;
mod write;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use server_llm::ToolSpec;
use shared_sandbox::{Outcome, Request};
use shared_types::{Effect, event::CallOutcome};

pub use arguments::{Arguments, BadArguments, Kind, Parameter};
pub use edit::EditTool;
pub use excerpt::bounded;
pub use glob::GlobTool;
pub use grep::GrepTool;
pub use list::ListTool;
pub use output::CommandOutput;
pub use read::ReadTool;
pub use shell::ShellTool;
pub use tasks::{TaskAsk, TaskKillTool, TaskReadTool, TaskStatusTool};
pub use write::WriteTool;

/// Something that the model may ask for.
pub trait Tool: Send + Sync {
    /// The name by which the model asks for it: letters, digits, `_` and `-`, at most 64.
    fn name(&self) -> &'static str;

    /// What it does and when to use it, for the model.
    fn description(&self) -> &'static str;

    /// Its arguments: what the model is shown and what is checked come from here.
    fn parameters(&self) -> &'static [Parameter];

    /// What a second run would do. Calls that are [`Effect::Pure`] only read, so they run beside
    /// one another; any other call runs alone, after those before it and before those after it.
    fn effect(&self) -> Effect;

    /// What checked arguments ask for.
    ///
    /// # Errors
    /// If they make no sense together; the text tells the model why.
    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments>;

    /// What the model is told of an end that is neither a failure of a file operation nor a
    /// refusal; `None` where it is not an end of this tool's requests. `limit` is how many bytes
    /// the text may have; a longer one loses its middle. A tool that asks nothing of the sandbox has
    /// none.
    fn render(&self, _ended: &Ended<'_>, _limit: usize) -> Option<Rendered> {
        None
    }
}

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Something of the sandbox.
    Operation(Prepared),
    /// Something of the session's tasks.
    Tasks(TaskAsk),
}

/// A request that is ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The request.
    pub request: Request,
    /// It is stopped after running this long.
    pub run_for: Duration,
    /// The call waits for its end this long; then it goes on in the background. Nothing where the
    /// call waits until it has ended.
    pub wait_for: Option<Duration>,
}

impl Prepared {
    /// A request whose end the call waits for.
    pub(crate) fn within(run_for: Duration, request: Request) -> Ask {
        Ask::Operation(Self {
            request,
            run_for,
            wait_for: None,
        })
    }

    /// The call's budget.
    pub(crate) fn budget(&self) -> Duration {
        self.wait_for.unwrap_or(self.run_for)
    }
}

/// How a request ended.
#[derive(Debug)]
pub struct Ended<'a> {
    /// What was asked.
    pub request: &'a Request,
    /// What became of it.
    pub outcome: &'a Outcome,
    /// What it wrote, where it was a command.
    pub output: &'a CommandOutput,
    /// The time that it was given.
    pub run_for: Duration,
}

/// What the model is told of a call that was cancelled in time.
pub(crate) const NEVER_RAN: &str = "cancelled before it ran";

/// What the model is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// How the call ended.
    pub outcome: CallOutcome,
    /// The text.
    pub text: String,
}

impl Rendered {
    pub(crate) fn completed(text: String) -> Self {
        Self {
            outcome: CallOutcome::Completed,
            text,
        }
    }
}

/// What the model is told of any end but a refusal, within the limit.
pub(crate) fn render(tool: &dyn Tool, ended: &Ended<'_>, limit: usize) -> Rendered {
    let failed = |text| Rendered {
        outcome: CallOutcome::Failed,
        text,
    };
    let rendered = match ended.outcome {
        Outcome::Failed(failure) => failed(format!("failed: {failure}")),
        _ => tool.render(ended, limit).unwrap_or_else(|| {
            failed("failed: the sandbox answered something that was not asked".to_owned())
        }),
    };
    Rendered {
        text: bounded(&rendered.text, limit),
        ..rendered
    }
}

/// The tools of a session, by name.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: BTreeMap<&'static str, Arc<dyn Tool>>,
}

impl ToolSet {
    /// These tools; of two with the same name the later one.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let tools = tools.into_iter().map(|tool| (tool.name(), tool)).collect();
        Self { tools }
    }

    /// Every tool of this crate.
    pub fn standard() -> Self {
        Self::new([
            Arc::new(ShellTool) as Arc<dyn Tool>,
            Arc::new(ReadTool),
            Arc::new(WriteTool),
            Arc::new(EditTool),
            Arc::new(GlobTool),
            Arc::new(GrepTool),
            Arc::new(ListTool),
            Arc::new(TaskStatusTool),
            Arc::new(TaskReadTool),
            Arc::new(TaskKillTool),
        ])
    }

    /// The tool with exactly this name.
    ///
    /// # Errors
    /// If there is none; the text tells the model which there are.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Tool>, BadArguments> {
        self.tools.get(name).ok_or_else(|| {
            let known: Vec<_> = self.tools.keys().copied().collect();
            BadArguments::new(format!(
                "there is no tool {:?}; the tools are {}",
                arguments::shortened(name),
                known.join(", ")
            ))
        })
    }

    /// What the model is shown, in the order of the names.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools
            .values()
            .map(|tool| ToolSpec {
                name: tool.name().to_owned(),
                description: tool.description().to_owned(),
                parameters: arguments::schema(tool.parameters()),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
