//! The tools that the model may ask for: one file per tool.
//!
//! A tool is a pure translation: arguments become one request to the sandbox, and what became of
//! the request becomes a text for the model; or they become a question about the session's tasks, about
//! the user's conversations, or one to the web.
//! It runs nothing, and so knows nothing of journals, runners, cancelling or time.

mod agent;
mod arguments;
mod chat;
mod context_edit;
mod edit;
mod excerpt;
mod glob;
mod grep;
pub(crate) mod history;
mod lines;
mod list;
mod output;
mod person;
mod plugin;
mod read;
mod recall;
mod search;
mod server;
mod shell;
mod skill;
mod tasks;
mod todo;
pub(crate) mod web;
mod whole;
mod write;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use server_llm::ToolSpec;
use shared_sandbox::{Outcome, Request};
use shared_types::{
    Effect, ImageFormat, TurnId,
    event::{CallOutcome, Role, TurnSettings},
};

use crate::transcript::Transcript;

pub use agent::{AgentAsk, AgentTools, BeginAgent, SendMessageTool, SubAgentTool};
pub(crate) use agent::{SEND_MESSAGE, SUB_AGENT};
pub use arguments::{Arguments, BadArguments, Kind, Parameter};
pub(crate) use chat::CREATE_CHAT;
pub use chat::{ChatAsk, CreateChatTool};
pub use context_edit::{ContextAsk, ContextChangeAsk, ContextEditTool};
pub use edit::EditTool;
pub use excerpt::bounded;
pub use glob::GlobTool;
pub use grep::GrepTool;
pub use history::{ChatHistoryTool, HistoryAsk};
pub use list::ListTool;
pub use output::CommandOutput;
pub use person::{AskUserTool, PersonAsk, PersonTools, PresentPlanTool};
pub use plugin::PluginCallTool;
pub use read::ReadTool;
pub use recall::{Handle, RecallAsk, RecallTool};
pub(crate) use recall::{excerpt_of, is_excerpt};
#[cfg(test)]
pub(crate) use search::SEARCH_TOOLS;
pub(crate) use search::{ACTIVE_STEPS, called, found as found_tools};
pub use search::{SearchTools, UseTool};
pub use server::ServerAsk;
use server::ServerTool;
pub use shell::ShellTool;
pub(crate) use skill::{SKILL, rendered as skill_rendered};
pub use skill::{SkillAsk, SkillTool};
pub use tasks::{TaskAsk, TaskKillTool, TaskReadTool, TaskStatusTool};
pub use todo::{TodoAsk, TodoListTool, TodoWriteTool};
pub(crate) use todo::{rendered as todo_rendered, written as todo_written};
pub use web::{WebAsk, WebFetchTool, WebSearchTool, WebTools};
pub use whole::WholeFile;
pub use write::WriteTool;

/// Something that the model may ask for.
pub trait Tool: Send + Sync {
    /// The name by which the model asks for it: letters, digits, `_` and `-`, at most 64.
    fn name(&self) -> &str;

    /// Other names that models know it by. They count where a model writes a call as text.
    fn aliases(&self) -> &[&str] {
        &[]
    }

    /// The purpose of the tool and its use, for the model.
    fn description(&self) -> &str;

    /// Sentences about the tool for the system prompt; `None` where the description says all.
    fn guidance(&self) -> Option<&str> {
        None
    }

    /// Its arguments, where it declares them one by one.
    fn parameters(&self) -> &[Parameter];

    /// Its arguments as a JSON Schema of an object, for the model.
    fn schema(&self) -> Value {
        arguments::schema(self.parameters())
    }

    /// Checks arguments that the model wrote.
    ///
    /// # Errors
    /// Fails if they do not have the form of [`Tool::schema`]; the text tells the model why.
    fn check(&self, written: &str) -> Result<Arguments, BadArguments> {
        Arguments::check(written, self.parameters())
    }

    /// The effect of a second run. Calls that are [`Effect::Pure`] only read, so they run beside
    /// one another; any other call runs alone, after those before it and before those after it.
    fn effect(&self) -> Effect;

    /// True if its next call can read on where a result was cut. The results of other tools are recalled.
    fn reads_on(&self) -> bool {
        false
    }

    /// True if requests may leave it out where there are many tools. Then a search finds it.
    fn can_be_found(&self) -> bool {
        false
    }

    /// The request that checked arguments make.
    ///
    /// # Errors
    /// If they make no sense together; the text tells the model why.
    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments>;

    /// The text for the model of an end that is neither a failure of a file operation nor a refusal.
    /// `None` if it is not an end of this tool's requests. `limit` bounds the text, in bytes; a
    /// longer one loses its middle. A tool that asks nothing of the sandbox has none.
    fn render(&self, _ended: &Ended<'_>, _limit: usize) -> Option<Rendered> {
        None
    }

    /// The longest text of its result, in bytes, where that is not the engine's own limit.
    fn most_bytes(&self) -> Option<usize> {
        None
    }
}

/// The request of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Something of the sandbox.
    Operation(Prepared),
    /// Something of the session's tasks.
    Tasks(TaskAsk),
    /// Something of the conversation that is not shown any more.
    Recall(RecallAsk),
    /// A change of an old result, as the model is sent it.
    Context(ContextAsk),
    /// Something of the user's other conversations.
    History(HistoryAsk),
    /// Something of the to-do list.
    Todo(TodoAsk),
    /// The instructions of a skill that is registered at the server.
    Skill(SkillAsk),
    /// Something of the web.
    Web(WebAsk),
    /// Something of the user.
    Person(PersonAsk),
    /// Something of another agent.
    Agent(AgentAsk),
    /// Another conversation of the user.
    Chat(ChatAsk),
    /// The tools that fit these words.
    FindTools(String),
    /// Something of a tool server.
    Server(ServerAsk),
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
    /// All of its input; empty where it takes none.
    pub input: Bytes,
}

impl Prepared {
    /// A request whose end the call waits for.
    pub(crate) fn within(run_for: Duration, request: Request) -> Ask {
        Ask::Operation(Self {
            request,
            run_for,
            wait_for: None,
            input: Bytes::new(),
        })
    }

    /// The call's budget.
    pub(crate) fn budget(&self) -> Duration {
        self.wait_for.unwrap_or(self.run_for)
    }
}

/// The end of a request.
#[derive(Debug)]
pub struct Ended<'a> {
    /// The request.
    pub request: &'a Request,
    /// Its outcome.
    pub outcome: &'a Outcome,
    /// The output, if it was a command.
    pub output: &'a CommandOutput,
    /// The file, if it was read as a whole.
    pub file: &'a WholeFile,
    /// The time that it was given.
    pub run_for: Duration,
}

/// True for the name of a tool of a tool server.
pub(crate) fn is_server_tool(name: &str) -> bool {
    name.starts_with(server::PREFIX)
}

/// The text for the model of a call that was cancelled in time.
pub(crate) const NEVER_RAN: &str = "cancelled before it ran";

/// The outcome and the text for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The outcome of the call.
    pub outcome: CallOutcome,
    /// The text.
    pub text: String,
    /// An image beside the text.
    pub image: Option<(ImageFormat, Bytes)>,
}

impl Rendered {
    pub(crate) fn new(outcome: CallOutcome, text: String) -> Self {
        Self {
            outcome,
            text,
            image: None,
        }
    }

    pub(crate) fn completed(text: String) -> Self {
        Self::new(CallOutcome::Completed, text)
    }

    pub(crate) fn failed(why: impl std::fmt::Display) -> Self {
        Self::new(CallOutcome::Failed, format!("failed: {why}"))
    }
}

/// The text for the model of any end but a refusal, within the limit.
pub fn render(tool: &dyn Tool, ended: &Ended<'_>, limit: usize) -> Rendered {
    let limit = tool.most_bytes().unwrap_or(limit);
    let rendered = match ended.outcome {
        Outcome::Failed(failure) => Rendered::failed(failure),
        _ => tool.render(ended, limit).unwrap_or_else(|| {
            Rendered::failed("the sandbox answered something that was not asked")
        }),
    };
    Rendered {
        text: bounded(&rendered.text, limit),
        ..rendered
    }
}

/// A place where tools come from. The tools of a turn are chosen once, at each claim of the turn.
pub trait ToolSource: Send + Sync {
    /// The tools for a turn with these settings; without settings where an earlier release claimed the turn.
    fn tools(&self, settings: Option<&TurnSettings>) -> Vec<Arc<dyn Tool>>;
}

/// The source of the tools in this crate: the same ones for every turn.
#[derive(Debug, Clone, Copy)]
pub struct BuiltIn;

impl ToolSource for BuiltIn {
    fn tools(&self, _settings: Option<&TurnSettings>) -> Vec<Arc<dyn Tool>> {
        vec![
            Arc::new(ShellTool),
            Arc::new(ReadTool),
            Arc::new(WriteTool),
            Arc::new(EditTool),
            Arc::new(GlobTool),
            Arc::new(GrepTool),
            Arc::new(ListTool),
            Arc::new(TaskStatusTool),
            Arc::new(TaskReadTool),
            Arc::new(TaskKillTool),
            Arc::new(RecallTool),
            Arc::new(ContextEditTool),
            Arc::new(ChatHistoryTool),
            Arc::new(TodoWriteTool),
            Arc::new(TodoListTool),
        ]
    }
}

/// True if a role means this tool by the name.
fn is_named(tool: &dyn Tool, name: &str) -> bool {
    let name = name.split_once('(').map_or(name, |(name, _)| name).trim();
    let mut names = tool.aliases().iter().copied().chain([tool.name()]);
    names.any(|known| known.eq_ignore_ascii_case(name))
}

/// The tools of a turn, by name.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: BTreeMap<String, Arc<dyn Tool>>,
    /// True if the tools that can be found are left out of requests.
    is_searched: bool,
}

impl ToolSet {
    /// These tools; of two with the same name the later one.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let tools = tools.into_iter();
        Self {
            tools: tools.map(|tool| (tool.name().to_owned(), tool)).collect(),
            is_searched: false,
        }
    }

    /// The tools of these sources for one turn; of two tools with the same name that of the earlier source.
    pub fn of(sources: &[Arc<dyn ToolSource>], settings: Option<&TurnSettings>) -> Self {
        let sources = sources.iter().rev();
        Self::new(sources.flat_map(|source| source.tools(settings)))
    }

    /// The same tools; if there are many, those that can be found are found by a search.
    pub(crate) fn searched(mut self) -> Self {
        let mut can_be_found = self.tools.values().filter(|tool| tool.can_be_found());
        if self.tools.len() <= search::OFFERED_AT_MOST || can_be_found.next().is_none() {
            return self;
        }
        let search = SearchTools::of(self.tools.values().filter(|tool| tool.can_be_found()));
        let added: [Arc<dyn Tool>; 2] = [Arc::new(search), Arc::new(UseTool)];
        let added = added.map(|tool| (tool.name().to_owned(), tool));
        self.tools.extend(added);
        self.is_searched = true;
        self
    }

    /// True if the tool of this name is called only after a search.
    pub(crate) fn needs_search(&self, name: &str) -> bool {
        let tool = self.tools.get(name);
        self.is_searched && tool.is_some_and(|tool| tool.can_be_found())
    }

    /// The tools that a search finds.
    pub(crate) fn to_find(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.values().filter(|tool| tool.can_be_found())
    }

    /// The tools that are in a request.
    fn offered(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        let tools = self.tools.values();
        tools.filter(|tool| !(self.is_searched && tool.can_be_found()))
    }

    /// The tools for a turn of this transcript: those of the sources, and those of the turn's extensions. None takes the
    /// place of a tool of the sources.
    pub(crate) fn of_turn(
        sources: &[Arc<dyn ToolSource>],
        transcript: &Transcript,
        turn: TurnId,
    ) -> Self {
        let Some(log) = transcript.turn(turn) else {
            return Self::of(sources, None);
        };
        let directory = transcript.directory();
        let mut all = Self::of(sources, log.settings.as_ref());
        let mut add = |tool: Arc<dyn Tool>| {
            all.tools.entry(tool.name().to_owned()).or_insert(tool);
        };
        if let Some(skills) = SkillTool::of(&log.extensions, directory) {
            add(Arc::new(skills));
        }
        let plugins = log.extensions.plugins.iter();
        for plugin in plugins.filter(|plugin| plugin.from.trusted) {
            for tool in PluginCallTool::all(plugin, directory) {
                add(Arc::new(tool));
            }
        }
        for tool in ServerTool::all(&log.offered) {
            add(tool);
        }
        let role = transcript.brief().map(|brief| &brief.role);
        all.in_role(role).searched()
    }

    /// The tools of these that an agent with this role may use; all of them without a role. A role may name a tool by any
    /// name under which models know it. Arguments in brackets behind a name are for rules.
    #[must_use]
    fn in_role(mut self, role: Option<&Role>) -> Self {
        if let Some(role) = role {
            self.tools.retain(|_, tool| {
                let named = |tools: &[String]| tools.iter().any(|name| is_named(&**tool, name));
                let denied = named(&role.denied_tools);
                role.tools.as_deref().is_none_or(named) && !denied
            });
        }
        self
    }

    /// Every tool of this crate.
    pub fn standard() -> Self {
        Self::new(BuiltIn.tools(None))
    }

    /// The sentences about these tools in the system prompt, in the order of the names.
    pub(crate) fn guidance(&self) -> String {
        let sentences: Vec<_> = self.offered().filter_map(|tool| tool.guidance()).collect();
        sentences.join(" ")
    }

    /// The tool with exactly this name.
    ///
    /// # Errors
    /// If there is none; the text tells the model which there are.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Tool>, BadArguments> {
        self.tools.get(name).ok_or_else(|| {
            let known: Vec<_> = self.offered().map(|tool| tool.name()).collect();
            let others = match self.is_searched {
                true => ", and those that search_tools finds",
                false => "",
            };
            BadArguments::new(format!(
                "there is no tool {:?}; the tools are {}{others}",
                arguments::shortened(name),
                known.join(", ")
            ))
        })
    }

    /// The tools as the model sees them, in the order of the names.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.offered()
            .map(|tool| ToolSpec {
                name: tool.name().to_owned(),
                description: tool.description().to_owned(),
                parameters: tool.schema(),
                aliases: tool.aliases().iter().map(|&name| name.to_owned()).collect(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
