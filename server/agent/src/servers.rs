//! The port to the tool servers of a session.

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Map, Value};
use shared_types::{
    ImageFormat, RunnerId, SandboxId,
    event::{OfferedTool, ToolServer},
};

/// The tool servers of one session. It starts them when they are needed, and stops them.
#[async_trait]
pub trait ToolServers: Send + Sync {
    /// The tools of a server, within a bound of the implementor's. Dropping the future ends the request.
    ///
    /// # Errors
    /// The server does not list them; the words tell people why.
    async fn list(
        &self,
        server: &ToolServer,
        place: Option<&ServerPlace>,
    ) -> Result<ListedTools, String>;

    /// True if the server has said, since its tools were listed, that they are others now.
    fn has_changed(&self, server: &str) -> bool;

    /// The result of a call. It is sent at most once. Dropping the future tells the server that it is not waited for.
    /// Until then the server may ask these people.
    ///
    /// # Errors
    /// There is no result; the failure tells if the call may have happened.
    async fn call(
        &self,
        server: &ToolServer,
        place: Option<&ServerPlace>,
        call: &ServerCall<'_>,
        people: &dyn AskedByServer,
    ) -> Result<ServerContent, ServerFailure>;
}

/// The people of a session, for the questions of a server that carries out a call.
#[async_trait]
pub trait AskedByServer: Send + Sync {
    /// The answer to a question, within a bound of the implementor's. Dropping the future withdraws the question.
    async fn ask(&self, question: ServerQuestion) -> ServerAnswer;
}

/// A question of a server, in words that name the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerQuestion {
    /// The question.
    pub text: String,
    /// Answers to choose from; other words are an answer as well.
    pub choices: Vec<String>,
}

/// The answer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAnswer {
    /// A person's words.
    Said(String),
    /// A person does not want to answer.
    Declined,
    /// No person answered.
    Nobody,
}

/// No people: for calls about which none is asked.
#[derive(Debug, Clone, Copy)]
pub struct NobodyAsked;

#[async_trait]
impl AskedByServer for NobodyAsked {
    async fn ask(&self, _: ServerQuestion) -> ServerAnswer {
        ServerAnswer::Nobody
    }
}

/// The place of a session's calls, where a server that is a program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPlace {
    /// The runner.
    pub runner: RunnerId,
    /// The workspace, or the container.
    pub sandbox: SandboxId,
    /// The session's directory, relative to the root of the sandbox; empty for the root itself.
    pub directory: String,
}

/// The tools of a server that can be used, and words on the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedTools {
    /// Those that can be used.
    pub tools: Vec<OfferedTool>,
    /// The others, each with the reason.
    pub left_out: Vec<String>,
}

/// A call of a server's tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCall<'a> {
    /// The tool, by the server's name of it.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: &'a Map<String, Value>,
}

/// The content of a result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerContent {
    /// Its text.
    pub text: String,
    /// Its images.
    pub images: Vec<(ImageFormat, Bytes)>,
    /// True if the server says that the call has failed.
    pub failed: bool,
}

/// The reason why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFailure {
    /// The reason, in words for the model: lower case, no full stop.
    pub words: String,
    /// True if the call may have happened.
    pub in_doubt: bool,
    /// True if its time was over.
    pub timed_out: bool,
}

/// No tool servers: for places where none can be.
#[derive(Debug, Clone, Copy)]
pub struct NoToolServers;

#[async_trait]
impl ToolServers for NoToolServers {
    async fn list(&self, _: &ToolServer, _: Option<&ServerPlace>) -> Result<ListedTools, String> {
        Err("this server of Gantry has no tool servers".to_owned())
    }

    fn has_changed(&self, _: &str) -> bool {
        false
    }

    async fn call(
        &self,
        _: &ToolServer,
        _: Option<&ServerPlace>,
        _: &ServerCall<'_>,
        _: &dyn AskedByServer,
    ) -> Result<ServerContent, ServerFailure> {
        Err(ServerFailure {
            words: "this server of Gantry has no tool servers".to_owned(),
            in_doubt: false,
            timed_out: false,
        })
    }
}
