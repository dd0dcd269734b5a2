//! `gantry approvals`: the questions of agents, and the answers.

use anyhow::bail;
use cli_screen::transcript::words;
use shared_api::Approval;
use shared_client::Client;
use shared_types::{
    Clock as _, SystemClock,
    event::{Answer, Question},
    human::{ago, duration},
};

use crate::{
    args::{Allow, Approvals, ListApprovals},
    pick,
    render::{clean::clean_line, question},
    screen::Screen,
    table::Table,
};

/// Longest title in a line, in characters.
const MAX_TITLE: usize = 60;

/// Carries out a command about approvals; without one, lists those that wait.
pub(crate) async fn run(
    client: &Client,
    screen: Screen,
    list_: ListApprovals,
    command: Option<Approvals>,
) -> anyhow::Result<()> {
    match command {
        None => list(client, screen, &list_).await,
        Some(Approvals::List(args)) => list(client, screen, &args).await,
        Some(Approvals::Show { approval, json }) => {
            let approval = pick::approval(client, &approval).await?;
            match json {
                true => screen.json(&approval),
                false => show(screen, &approval),
            }
        }
        Some(Approvals::Allow(args)) => allow(client, screen, args).await,
        Some(Approvals::Deny { approval, words }) => {
            let approval = pick::approval(client, &approval).await?;
            let words = words.join(" ");
            let words = Some(words).filter(|words| !words.trim().is_empty());
            give(client, screen, &approval, Answer::Denied { words }).await
        }
        Some(Approvals::Answer { approval, words }) => {
            let approval = pick::approval(client, &approval).await?;
            let text = words.join(" ");
            give(client, screen, &approval, Answer::Said { text }).await
        }
    }
}

async fn list(client: &Client, screen: Screen, args: &ListApprovals) -> anyhow::Result<()> {
    let approvals = client.approvals(args.all, args.limit as usize).await?;
    if args.json {
        return approvals
            .iter()
            .try_for_each(|approval| screen.json(approval));
    }
    if approvals.is_empty() {
        screen.note("no question waits for you");
        return Ok(());
    }
    let now = SystemClock::new().now();
    let ids: Vec<_> = approvals
        .iter()
        .map(|approval| approval.id.to_string())
        .collect();
    let mut table = Table::new(["ID", "ASKED", "SESSION", "QUESTION", "RISK", "STATE"])
        .whole(&[0])
        .spare(&[1, 2]);
    for (approval, id) in approvals.iter().zip(&ids) {
        table.row([
            pick::beginning(id, &ids).to_owned(),
            ago(now.since(approval.asked_at)),
            clean_line(&approval.session_title, MAX_TITLE),
            clean_line(&approval.question.title(), MAX_TITLE),
            risk(&approval.question),
            state(approval),
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))
}

fn risk(question: &Question) -> String {
    match question {
        Question::Call(call) => call.risk.to_string(),
        Question::Free { .. } | Question::Plan { .. } => String::new(),
    }
}

/// The state of a question, in a few words.
fn state(approval: &Approval) -> String {
    let now = SystemClock::new().now();
    match &approval.outcome {
        None => format!("waits, {} left", duration(approval.until.since(now))),
        Some(outcome) => {
            words::answered(&outcome.answer, outcome.by.as_deref().unwrap_or_default())
        }
    }
}

fn show(screen: Screen, approval: &Approval) -> anyhow::Result<()> {
    screen.print(&question::shown(&approval.question, screen.style()))?;
    screen.line(&format!("{} · {}", approval.id, state(approval)))?;
    if approval.outcome.is_none() {
        let way = match approval.question {
            Question::Free { .. } => "answer it with: gantry approvals answer ID WORDS",
            Question::Call(_) | Question::Plan { .. } => {
                "answer it with: gantry approvals allow ID, or: gantry approvals deny ID [WORDS]"
            }
        };
        screen.line(&screen.style().dim(way))?;
    }
    Ok(())
}

async fn allow(client: &Client, screen: Screen, args: Allow) -> anyhow::Result<()> {
    let approval = pick::approval(client, &args.approval).await?;
    let named = match &approval.question {
        Question::Call(call) => call.rule.clone(),
        Question::Free { .. } | Question::Plan { .. } => None,
    };
    let rule = match args.always {
        Some(rule) if rule.is_empty() => match named {
            Some(rule) => Some(rule),
            None => bail!("no rule is good for this; name one: --always RULE"),
        },
        rule => rule,
    };
    let answer = Answer::Allowed {
        command: args.command,
        rule,
        mode: args.mode,
    };
    give(client, screen, &approval, answer).await
}

async fn give(
    client: &Client,
    screen: Screen,
    approval: &Approval,
    answer: Answer,
) -> anyhow::Result<()> {
    let answered = client.answer(approval.id, approval.digest, answer).await?;
    screen.line(&state(&answered))
}
