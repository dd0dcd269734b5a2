//! Calls of agents' tools by callers. A program that is an agent itself asks in the words of a tool, and gets the words
//! that a model of ours would get.
//!
//! A call is one operation of a caller, so it is placed once under its key, and it goes on if the caller leaves.

use bytes::Bytes;
use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};
use server_agent::tools::{
    Ask, CommandOutput, EditTool, Ended, GlobTool, GrepTool, ListTool, Prepared, ReadTool,
    Rendered, ShellTool, Tool, WholeFile, WriteTool, bounded, render,
};
use server_store::StoreError;
use shared_sandbox::{Command, Controls, Exec, OperationEvent, Outcome, OutputStream, Request};
use shared_types::{
    OperationId, RefusalCode, Timestamp, event::CallOutcome, limits::COMMAND_RUNS_AT_MOST,
};
use tokio::time::{Instant, timeout_at};

use super::{Attached, GuardedReader, OperationView, Operations, StartOperation};
use crate::{AppError, OpContext};

/// Longest text of a result, in bytes.
pub const MAX_CALL_TEXT_BYTES: usize = 32 * 1024;

/// A tool that callers may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerTool {
    /// Runs a command.
    Shell,
    /// Reads lines of a file, or an image.
    Read,
    /// Writes a whole file.
    Write,
    /// Replaces text in a file.
    Edit,
    /// Finds files by name.
    Glob,
    /// Finds lines by content.
    Grep,
    /// Lists a directory.
    List,
}

impl CallerTool {
    fn tool(self) -> &'static dyn Tool {
        match self {
            Self::Shell => &ShellTool,
            Self::Read => &ReadTool,
            Self::Write => &WriteTool,
            Self::Edit => &EditTool,
            Self::Glob => &GlobTool,
            Self::Grep => &GrepTool,
            Self::List => &ListTool,
        }
    }

    /// Its arguments, as a JSON Schema of an object.
    pub fn schema(self) -> Value {
        self.tool().schema()
    }
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The tool.
    pub tool: CallerTool,
    /// Its arguments, which are not checked yet.
    pub arguments: Map<String, Value>,
    /// The place, as of [`StartOperation::runner`].
    pub runner: Option<String>,
    /// The caller's name of the call, as of [`StartOperation::key`].
    pub key: Option<String>,
}

/// A call that was started, or found again, and is listened to.
#[derive(Debug)]
pub struct ListenedCall {
    view: OperationView,
    tool: CallerTool,
    prepared: Prepared,
    reading: GuardedReader,
    controls: Arc<dyn Controls>,
    output: CommandOutput,
    file: WholeFile,
    unreachable_since: Option<Timestamp>,
    until: Instant,
}

/// The state of a call at the end of the time for which it was listened to.
#[derive(Debug)]
pub enum CallState {
    /// It ended.
    Ended {
        /// The words for the caller.
        rendered: Rendered,
        /// True if the caller should read the words as a failure.
        failed: bool,
    },
    /// It goes on without its caller.
    Runs {
        /// The output so far, bounded.
        output: String,
        /// The offsets at which to read on in stdout and stderr.
        ends: [u64; 2],
        /// When its runner was last heard of; absent while the runner can be reached.
        unreachable_since: Option<Timestamp>,
    },
}

impl Operations {
    /// Starts a call, unless the user has started it before under its key, and listens to it.
    ///
    /// # Errors
    /// The same as of [`Operations::start`]; also if the arguments are not those of the tool.
    pub async fn call(&self, ctx: &OpContext, call: ToolCall) -> Result<ListenedCall, AppError> {
        let tool = call.tool.tool();
        let written = Value::Object(call.arguments).to_string();
        let bad = |error: server_agent::tools::BadArguments| AppError::Invalid(error.to_string());
        let arguments = tool.check(&written).map_err(bad)?;
        let Ask::Operation(prepared) = tool.prepare(&arguments).map_err(bad)? else {
            return Err(AppError::Invalid("this tool runs on no runner".to_owned()));
        };
        let start = StartOperation {
            key: call.key,
            runner: call.runner,
            request: prepared.request.clone(),
            run_for: Some(prepared.run_for),
        };
        let (view, _) = self.start(ctx, start).await?;
        let listened_for = prepared.wait_for.unwrap_or(prepared.run_for);
        let attached = self.attach(ctx, view.id, [0, 0]).await?;
        Ok(listened(
            attached,
            call.tool,
            prepared,
            [0, 0],
            Instant::now() + listened_for,
        ))
    }

    /// Listens to a command that was started before, from these offsets of stdout and stderr on, for so long at most.
    ///
    /// # Errors
    /// If the user has no such operation, or it is no command.
    pub async fn listen(
        &self,
        ctx: &OpContext,
        id: OperationId,
        from: [u64; 2],
        wait_for: Duration,
    ) -> Result<ListenedCall, AppError> {
        let until = Instant::now() + wait_for;
        let attached = self.attach(ctx, id, from).await?;
        if attached.view.kind != "exec" {
            return Err(AppError::Invalid(format!("{id} is not a command")));
        }
        // The words of its end need no more of its request.
        let prepared = Prepared {
            request: Request::Exec(Exec::new(Command::Shell(attached.view.title.clone()))),
            run_for: COMMAND_RUNS_AT_MOST,
            wait_for: None,
            input: Bytes::new(),
        };
        Ok(listened(attached, CallerTool::Shell, prepared, from, until))
    }

    /// The operation that the user started under this key, if there is one.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn under_key(
        &self,
        ctx: &OpContext,
        key: &str,
    ) -> Result<Option<OperationId>, AppError> {
        match self.store.operation_by_key(ctx.tenant, ctx.user, key).await {
            Ok(row) => Ok(Some(row.id)),
            Err(StoreError::NotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn listened(
    attached: Attached,
    tool: CallerTool,
    prepared: Prepared,
    from: [u64; 2],
    until: Instant,
) -> ListenedCall {
    let file = match &prepared.request {
        Request::Download(download) => WholeFile::of_at_most(download.max_bytes),
        _ => WholeFile::default(),
    };
    ListenedCall {
        view: attached.view,
        tool,
        prepared,
        reading: attached.reading,
        controls: attached.controls,
        output: CommandOutput::starting_at(MAX_CALL_TEXT_BYTES, from),
        file,
        unreachable_since: None,
        until,
    }
}

impl ListenedCall {
    /// The operation.
    pub fn operation(&self) -> OperationId {
        self.view.id
    }

    /// The name of its runner.
    pub fn runner_name(&self) -> &str {
        &self.view.runner_name
    }

    /// The bytes of output that came so far.
    pub fn output_bytes(&self) -> u64 {
        self.output.ends().iter().sum()
    }

    /// Listens until the end, or until the time to listen is over. Cancel-safe: asked again, it goes on.
    ///
    /// # Errors
    /// If the user may not use the runner any more.
    pub async fn state(&mut self) -> Result<CallState, AppError> {
        loop {
            let Ok(next) = timeout_at(self.until, self.reading.next()).await else {
                return Ok(self.runs());
            };
            match next? {
                Some(OperationEvent::Output {
                    stream,
                    offset,
                    data,
                }) => self.take(stream, offset, &data).await,
                Some(OperationEvent::Gap { stream, to, .. }) => self.output.skip_to(stream, to),
                Some(OperationEvent::Unreachable { since }) => self.unreachable_since = Some(since),
                Some(OperationEvent::Reachable) => self.unreachable_since = None,
                Some(OperationEvent::Accepted | OperationEvent::InputTaken(_)) => {}
                Some(OperationEvent::Ended(outcome)) => {
                    let (rendered, failed) = self.words(outcome);
                    return Ok(CallState::Ended { rendered, failed });
                }
                None => return Ok(self.runs()),
            }
        }
    }

    async fn take(&mut self, stream: OutputStream, offset: u64, data: &[u8]) {
        if matches!(self.prepared.request, Request::Download(_)) {
            self.file.push(offset, data);
            let came = offset.saturating_add(data.len() as u64);
            self.controls.commit(stream, came).await;
        } else {
            self.output.push(stream, offset, data);
        }
    }

    fn runs(&self) -> CallState {
        CallState::Runs {
            output: self.output.show(MAX_CALL_TEXT_BYTES),
            ends: self.output.ends(),
            unreachable_since: self.unreachable_since,
        }
    }

    fn words(&self, outcome: Outcome) -> (Rendered, bool) {
        let rendered = match &outcome {
            Outcome::Refused(refusal) if refusal.code == RefusalCode::Lost => said(
                CallOutcome::Unknown,
                format!("outcome unknown: {refusal}; find out what happened before you repeat it"),
            ),
            Outcome::Refused(refusal) => {
                said(CallOutcome::Refused, format!("it did not run: {refusal}"))
            }
            _ => render(
                self.tool.tool(),
                &Ended {
                    request: &self.prepared.request,
                    outcome: &outcome,
                    output: &self.output,
                    file: &self.file,
                    run_for: self.prepared.run_for,
                },
                MAX_CALL_TEXT_BYTES,
            ),
        };
        let failed = rendered.outcome != CallOutcome::Completed;
        (rendered, failed)
    }
}

fn said(outcome: CallOutcome, text: String) -> Rendered {
    Rendered {
        outcome,
        text: bounded(&text, MAX_CALL_TEXT_BYTES),
        image: None,
    }
}
