//! Commands that tell of a session, and the one that stops it.

use std::time::Duration;

use server_agent::Agent;
use server_store::{ModelUsage, Page, UsageBy};
use shared_sandbox::CancelAnswer;
use shared_types::{
    clean::clean_line,
    event::TurnOutcome,
    human::{ago, cost, tokens},
};

use super::{Asked, CommandDone, Commands, Shown, choices, other_sessions::title};
use crate::{AppError, Session, SettingName, Since, Task, UsageSums};

/// Most rows of a list.
const ROWS_AT_MOST: usize = 50;

/// Longest command of a task, in characters.
const COMMAND_AT_MOST: usize = 80;

/// Longest task of an agent, in characters.
const TASK_AT_MOST: usize = 60;

/// Longest list of roles, in characters.
const ROLES_AT_MOST: usize = 400;

/// The newest changes of a window that are shown.
const CHANGES_SHOWN: usize = 5;

/// Most questions that are counted.
const QUESTIONS_COUNTED: u32 = 100;

impl Commands {
    pub(super) async fn status(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        let session = &asked.session;
        let state = match session.running_turn {
            Some(_) => "a turn is under way",
            None => "nothing is under way",
        };
        let page = Page {
            after: None,
            limit: QUESTIONS_COUNTED,
        };
        let (questions, _) = self.approvals.list(asked.ctx, false, page).await?;
        let here = questions.iter().filter(|one| one.session == session.id);
        let state = match here.count() {
            0 => state.to_owned(),
            1 => format!("{state}; a question waits for your answer"),
            count => format!("{state}; {count} questions wait for your answer"),
        };
        let model = self.setting(asked, SettingName::Model).await?;
        let mode = self.mode_in_words(asked, asked.terms.mode).await?;
        let usage = self.usage.of_session(asked.ctx, session.id, None).await?;
        let mut rows = vec![
            ("session", session_in_words(session)),
            ("state", state),
            ("place", self.place(asked, session).await?),
            ("model", choices::value(&model)),
            ("mode", mode.trim_start_matches("mode ").to_owned()),
        ];
        // Without a model that can be used there is no window.
        if let Ok(report) = self.sessions.context(asked.ctx, session.id).await {
            rows.push(("window", window(&report)));
        }
        rows.push(("usage", used(&usage.total)));
        let rows = rows
            .into_iter()
            .map(|(name, value)| vec![name.to_owned(), value]);
        Ok(CommandDone::shown([Shown::Table {
            columns: Vec::new(),
            rows: rows.collect(),
        }]))
    }

    pub(super) async fn context(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        let report = self.sessions.context(asked.ctx, asked.id()).await?;
        let whole = report.window.unwrap_or(report.tokens).max(1);
        let parts = report.parts.iter().filter(|(_, tokens)| *tokens > 0);
        let rows = parts.map(|(name, tokens)| {
            let share = tokens * 100 / whole;
            vec![(*name).to_owned(), tokens.to_string(), format!("{share} %")]
        });
        let mut shown = vec![
            Shown::Text(format!("{}: {}", report.model, window(&report))),
            Shown::Table {
                columns: vec!["PART", "TOKENS", "SHARE"],
                rows: rows.collect(),
            },
        ];
        if let Some((input, cached)) = report.last.filter(|(input, _)| *input > 0) {
            let share = cached * 100 / input;
            shown.push(Shown::Text(format!(
                "{share} % of the last request was cached"
            )));
        }
        if report.excerpts > 0 {
            shown.push(Shown::Text(format!(
                "{} long results are shown to the model as excerpts; it can recall the rest",
                report.excerpts
            )));
        }
        let now = self.clock.now();
        let first = report.changes.len().saturating_sub(CHANGES_SHOWN);
        let changes = report.changes.iter().skip(first);
        shown.extend(
            changes.map(|change| {
                Shown::Text(format!("{}: {}", ago(now.since(change.at)), change.what))
            }),
        );
        Ok(CommandDone::shown(shown))
    }

    pub(super) async fn usage(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        let of = |since| self.usage.since(asked.ctx, since, UsageBy::Day, false);
        let here = self.usage.of_session(asked.ctx, asked.id(), None).await?;
        let today = of(Since::Ago(Duration::ZERO)).await?;
        let month = of(Since::Usual).await?;
        let row = |name: &str, sums: &UsageSums| {
            let ModelUsage {
                calls,
                unpriced,
                cost_micros,
                usage,
            } = sums.total;
            vec![
                name.to_owned(),
                calls.to_string(),
                tokens(
                    usage
                        .input
                        .saturating_sub(usage.cached.saturating_add(usage.cache_written)),
                ),
                tokens(usage.cached),
                tokens(usage.output),
                cost(calls, cost_micros, unpriced),
            ]
        };
        Ok(CommandDone::shown([
            Shown::Table {
                columns: vec!["", "CALLS", "FRESH", "CACHED", "OUTPUT", "COST"],
                rows: vec![
                    row("this session", &here),
                    row("today (UTC)", &today),
                    row("last 30 days", &month),
                ],
            },
            Shown::Text("tokens of models; gantry usage tells more".to_owned()),
        ]))
    }

    pub(super) async fn tasks(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        let tasks = self.sessions.tasks(asked.ctx, asked.id()).await?;
        if tasks.is_empty() {
            return Ok(CommandDone::text("nothing went on in the background"));
        }
        let now = self.clock.now();
        let first = tasks.len().saturating_sub(ROWS_AT_MOST);
        let rows = tasks[first..].iter().map(|task| {
            vec![
                task.number.to_string(),
                task.ended.clone().unwrap_or_else(|| "runs".to_owned()),
                ago(now.since(task.placed.at)),
                task.placed.place.runner_name.clone(),
                command(task),
            ]
        });
        Ok(CommandDone::shown([
            Shown::Table {
                columns: vec!["TASK", "STATE", "BEGUN", "RUNNER", "COMMAND"],
                rows: rows.collect(),
            },
            Shown::Text("/stop N stops one that runs".to_owned()),
        ]))
    }

    pub(super) async fn agents(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        let agents = self.sessions.agents(asked.ctx, asked.id()).await?;
        if !asked.words.is_empty() {
            return self.stop_agent(asked, &agents).await;
        }
        if agents.is_empty() {
            let roles = self.extensions.found(asked.ctx, asked.id()).await?.roles;
            let mut names = vec!["general", "explore"];
            names.extend(roles.iter().map(|role| role.name.as_str()));
            let names = clean_line(&names.join(", "), ROLES_AT_MOST);
            return Ok(CommandDone::text(format!(
                "this session has begun no agents; the roles for one are: {names}"
            )));
        }
        let now = self.clock.now();
        let first = agents.len().saturating_sub(ROWS_AT_MOST);
        let rows = agents[first..].iter().map(|(agent, row)| {
            let (steps, used) = match &agent.ended {
                Some(end) => (end.steps.to_string(), tokens(end.tokens)),
                None => (String::new(), String::new()),
            };
            vec![
                agent.name.clone(),
                agent_state(agent, row.as_ref()),
                steps,
                used,
                ago(now.since(agent.begun_at)),
                clean_line(&agent.description, TASK_AT_MOST),
                agent.session.to_string(),
            ]
        });
        Ok(CommandDone::shown([
            Shown::Table {
                columns: vec![
                    "AGENT", "STATE", "STEPS", "TOKENS", "BEGUN", "TASK", "SESSION",
                ],
                rows: rows.collect(),
            },
            Shown::Text(
                "/resume NAME opens the conversation of one; /agents stop NAME stops one"
                    .to_owned(),
            ),
        ]))
    }

    async fn stop_agent(
        &self,
        asked: &Asked<'_>,
        agents: &[(Agent, Option<Session>)],
    ) -> Result<CommandDone, AppError> {
        let name = asked.words.strip_prefix("stop").map(str::trim);
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err(AppError::Invalid(
                "write /agents, or /agents stop and the name of an agent".to_owned(),
            ));
        };
        let agent = agents.iter().find(|(agent, _)| agent.name == name);
        let Some((agent, _)) = agent else {
            let name = clean_line(name, TASK_AT_MOST);
            return Err(AppError::Invalid(format!(
                "there is no agent {name}; /agents lists them"
            )));
        };
        if agent.ended.is_some() {
            return Ok(CommandDone::text(format!("{} had ended", agent.name)));
        }
        let stops = self.sessions.cancel(asked.ctx, agent.session).await?;
        Ok(CommandDone::text(match stops {
            Some(_) => format!("{} is stopping…", agent.name),
            None => format!("{} had ended", agent.name),
        }))
    }

    pub(super) async fn stop(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        if asked.words.is_empty() {
            let stops = self.sessions.cancel(asked.ctx, asked.id()).await?;
            return Ok(CommandDone::text(match stops {
                Some(_) => "stopping…",
                None => "nothing is under way",
            }));
        }
        let Ok(number) = asked.words.parse::<u32>() else {
            return Err(AppError::Invalid(
                "write /stop, or /stop and the number of a task; /tasks lists them".to_owned(),
            ));
        };
        let tasks = self.sessions.tasks(asked.ctx, asked.id()).await?;
        let Some(task) = tasks.iter().find(|task| task.number == number) else {
            return Err(AppError::Invalid(format!(
                "there is no task {number}; /tasks lists them"
            )));
        };
        let stopped = self
            .sessions
            .cancel_operation(asked.ctx, task.placed.operation);
        Ok(CommandDone::text(match stopped.await? {
            CancelAnswer::Cancelled => format!("task {number} is stopped"),
            CancelAnswer::AlreadyExited => format!("task {number} had ended"),
            CancelAnswer::Recorded => format!("task {number} is stopped when its runner is back"),
            CancelAnswer::NeverStarted => {
                format!("task {number} had not started, and never will")
            }
        }))
    }

    pub(super) async fn permissions(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        let known = self.permissions.list(asked.ctx).await?;
        let operator = known.operator.into_iter().map(|set| {
            let who = "the operator".to_owned();
            (set.decision, set.rule, who)
        });
        let stored = known.stored.into_iter().map(|row| {
            let who = match row.user {
                Some(_) => "you".to_owned(),
                None => format!("{}, for everyone", row.by_name),
            };
            (row.decision, row.rule, who)
        });
        let of_files = known.files.iter().flat_map(|file| {
            let counting = file.counting(!file.changed);
            counting.map(|set| {
                let who = format!("{} on {}", file.path(), file.runner_name);
                (set.decision, set.rule, who)
            })
        });
        let rows = operator.chain(stored).chain(of_files);
        let rows: Vec<_> = rows
            .map(|(decision, rule, who)| vec![decision.to_string(), rule.to_string(), who])
            .collect();
        if rows.is_empty() {
            return Ok(CommandDone::text("no rule is set; the mode alone decides"));
        }
        Ok(CommandDone::shown([Shown::Table {
            columns: vec!["", "RULE", "SET BY"],
            rows,
        }]))
    }
}

/// The title and the id of a session.
fn session_in_words(session: &Session) -> String {
    match session.title.as_str() {
        "" => session.id.to_string(),
        _ => format!("{} · {}", title(session), session.id),
    }
}

/// The command of a task, on one line.
fn command(task: &Task) -> String {
    let arguments = serde_json::from_str::<serde_json::Value>(&task.asked.arguments);
    let command = arguments.ok().and_then(|all| {
        let command = all.get("command")?.as_str()?;
        Some(clean_line(command, COMMAND_AT_MOST))
    });
    command.unwrap_or_else(|| task.asked.name.clone())
}

/// `about 3,306 of 8,000 tokens (41 %)`, without the commas.
fn window(report: &server_agent::ContextReport) -> String {
    let tokens = report.tokens;
    match report.window {
        Some(window) => {
            let share = tokens * 100 / window.max(1);
            format!("about {tokens} of {window} tokens ({share} %)")
        }
        None => format!("about {tokens} tokens; the model's window is not known"),
    }
}

/// `4 calls of models · 12.3k tokens sent, 800 received · $0.12`.
fn used(sum: &ModelUsage) -> String {
    if sum.calls == 0 {
        return "no call of a paid model yet".to_owned();
    }
    let calls = match sum.calls {
        1 => "1 call".to_owned(),
        calls => format!("{calls} calls"),
    };
    format!(
        "{calls} of models · {} tokens sent, {} received · {}",
        tokens(sum.usage.input),
        tokens(sum.usage.output),
        cost(sum.calls, sum.cost_micros, sum.unpriced)
    )
}

/// The state of an agent in a word or two.
fn agent_state(agent: &Agent, row: Option<&Session>) -> String {
    let state = match (&agent.ended, row) {
        (Some(end), _) => match end.outcome {
            TurnOutcome::Completed => "done",
            TurnOutcome::Failed => "failed",
            TurnOutcome::Cancelled | TurnOutcome::Interrupted => "stopped",
        },
        (None, Some(row)) if row.waiting_approvals > 0 => "asks you",
        (None, Some(row)) if row.running_turn.is_some() => "works",
        (None, Some(_)) => "waits for a place",
        (None, None) => "gone",
    };
    match agent.background && agent.ended.is_none() {
        true => format!("{state}, in the background"),
        false => state.to_owned(),
    }
}
