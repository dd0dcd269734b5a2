//! Calls that ask for the session's tasks: commands that went on in the background when their own
//! calls ended. Looking at one reads its operation by its id, and runs nothing.

use std::{sync::Arc, time::Duration};

use shared_sandbox::{Command, Exec, Request};
use shared_types::{
    RefusalCode,
    clean::clean_line,
    event::{Awaited, CallOutcome, ToolCall},
    human::duration,
    limits::FILE_OPERATION_WITHIN,
};

use super::{
    TurnError,
    conclusion::Conclusion,
    listen::Listener,
    site::{Plan, Site},
    told::{self, Told, not_run},
};
use crate::{
    tools::{Ask, BadArguments, Prepared, Rendered, TaskAsk, Tool, bounded},
    transcript::{Task, Transcript},
    wait::WaitingCall,
};

/// Ended tasks that are shown in a list.
const ENDED_SHOWN: usize = 20;

/// Longest part of a command that is shown in a list, in bytes.
const SHOWN_BYTES: usize = 120;

/// The point to which a look was brought.
pub(super) enum Look {
    Done(Looked),
    /// To where it only waits.
    Waits(WaitingCall),
}

/// The result of a look.
pub(super) struct Looked {
    pub(super) rendered: Rendered,
    /// The event that the look waited for in vain.
    pub(super) awaits: Option<Awaited>,
}

/// The time that an ask is given.
pub(super) fn budget(site: &Site<'_>, ask: &TaskAsk) -> Duration {
    match ask {
        TaskAsk::Status => FILE_OPERATION_WITHIN,
        TaskAsk::Read { wait_for, .. } => *wait_for,
        TaskAsk::Kill { .. } => site.engine.limits.stop_within,
    }
}

/// Does what is asked of the session's tasks, as the log has them now.
pub(super) async fn run(site: &Site<'_>, ask: &TaskAsk) -> Result<Look, TurnError> {
    let transcript = Transcript::of(&site.ports.log.load().await?);
    let number = match ask {
        TaskAsk::Status => {
            return Ok(Look::nowhere(status(site, transcript.tasks())));
        }
        TaskAsk::Read { task, .. } | TaskAsk::Kill { task } => *task,
    };
    let found = transcript.tasks().iter().find(|task| task.number == number);
    let prepared = found.ok_or_else(|| unknown(number, transcript.tasks()));
    match prepared.and_then(|task| Ok((task, planned(site, task)?))) {
        Ok((task, (tool, prepared))) => look(site, ask, task, (&*tool, &prepared)).await,
        Err(bad) => Ok(Look::nowhere(not_run(bad))),
    }
}

async fn look(
    site: &Site<'_>,
    ask: &TaskAsk,
    task: &Task,
    (tool, prepared): (&dyn Tool, &Prepared),
) -> Result<Look, TurnError> {
    let from = match ask {
        TaskAsk::Read { from, .. } => *from,
        _ => [0, 0],
    };
    let mut listener = Listener::read(site, task.placed.operation, from, budget(site, ask));
    let conclusion = match ask {
        TaskAsk::Read { wait_for, .. } => listener.look(*wait_for).await,
        _ => listener.stop_it().await,
    };
    if conclusion.refusal() == Some(RefusalCode::StaleEpoch) {
        return Err(TurnError::StaleEpoch);
    }
    if let Conclusion::Waits { until, awaits } = conclusion {
        return Ok(Look::Waits(listener.waiting_call(until, awaits)));
    }
    listener.note_came();
    let told = Told {
        tool,
        prepared,
        listener: &listener,
        started: task.placed.at,
        was_placed: true,
        limit: site.result_bytes,
        number: None,
    };
    let rendered = match &conclusion {
        Conclusion::StillRuns if site.cancel.is_cancelled() => told::cancelled(format!(
            "cancelled while it waited for task {}, which was not stopped by that",
            task.number
        )),
        Conclusion::StillRuns => {
            let age = site.engine.clock.now().since(task.placed.at);
            told.no_end_yet(task, age)
        }
        // The look did what it was to do, however the command ended.
        Conclusion::Ended(_) => match told.of(&conclusion) {
            ended if ended.outcome == CallOutcome::Unknown => ended,
            ended => Rendered::completed(ended.text),
        },
        _ => told.of(&conclusion),
    };
    Ok(Look::Done(Looked {
        rendered,
        awaits: match task.ended.is_some() && listener.gone_since().is_none() {
            true => None,
            false => listener.awaits(&conclusion),
        },
    }))
}

/// The request of its call: the words for its end depend on that.
fn planned(site: &Site<'_>, task: &Task) -> Result<(Arc<dyn Tool>, Prepared), BadArguments> {
    let Plan { tool, ask } = Plan::of(&site.tools, &task.asked.name, &task.asked.arguments)?;
    match ask {
        Ask::Operation(prepared) => Ok((tool, prepared)),
        _ => Err(BadArguments::new(format!(
            "task {} was begun by another version of the server, which cannot be gone on with",
            task.number
        ))),
    }
}

fn unknown(number: u32, tasks: &[Task]) -> BadArguments {
    BadArguments::new(match tasks.last() {
        Some(last) => format!("there is no task {number}; the last one is {}", last.number),
        None => format!("there is no task {number}: nothing went on in the background"),
    })
}

/// A line for each task that runs, then for those that ended last.
fn status(site: &Site<'_>, tasks: &[Task]) -> Rendered {
    let now = site.engine.clock.now();
    let (ended, running): (Vec<_>, Vec<_>) =
        tasks.iter().rev().partition(|task| task.ended.is_some());
    let shown = running
        .into_iter()
        .chain(ended.into_iter().take(ENDED_SHOWN));
    let lines = shown.map(|task| {
        let state = match &task.ended {
            Some(summary) => format!("ended: {summary}"),
            None => format!(
                "runs as far as is known, for {}",
                duration(now.since(task.placed.at))
            ),
        };
        let runner = &task.placed.place.runner_name;
        let asked = bounded(&command(site, task), SHOWN_BYTES);
        let asked = clean_line(&asked, SHOWN_BYTES);
        format!("task {}, on {runner}: {state}: {asked}\n", task.number)
    });
    let text: String = lines.collect();
    Rendered::completed(match text.is_empty() {
        true => "[nothing went on in the background]".to_owned(),
        false => bounded(&text, site.result_bytes),
    })
}

/// The command itself, where it is one.
fn command(site: &Site<'_>, task: &Task) -> String {
    let ToolCall {
        name, arguments, ..
    } = &task.asked;
    match Plan::of(&site.tools, name, arguments).map(|plan| plan.ask) {
        Ok(Ask::Operation(Prepared {
            request:
                Request::Exec(Exec {
                    command: Command::Shell(script),
                    ..
                }),
            ..
        })) => script,
        _ => arguments.clone(),
    }
}

impl Look {
    fn nowhere(rendered: Rendered) -> Self {
        Self::Done(Looked {
            rendered,
            awaits: None,
        })
    }
}
