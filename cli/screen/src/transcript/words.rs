//! The words of notes on what the log records beside messages, answers and calls.

use shared_types::{
    SessionId,
    event::{
        Answer, InstructionFile, ProjectFile, TodoItem, TodoState, TurnOutcome, Unanswered,
        Worktree, WorktreeState,
    },
    human::tokens,
};

use super::{
    item::{TodoChange, TodoRow},
    safe,
};

/// The words on the instructions of a place where they are new, and on files that were not read.
pub(super) fn instructions(files: Option<&[InstructionFile]>, unread: &[String]) -> Vec<String> {
    let read = files.map(|files| {
        let names = files.iter().map(|file| match file.cut {
            true => format!("{} (its beginning; 32 KiB are read in all)", file.path),
            false => file.path.clone(),
        });
        match names.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "instructions: none any more".to_owned(),
            names => safe::line(&format!("instructions: {names}")),
        }
    });
    let unread = unread
        .iter()
        .map(|why| safe::line(&format!("not read: {why}")));
    read.into_iter().chain(unread).collect()
}

/// The words on a project's rules that do not count.
pub(super) fn untrusted(file: &ProjectFile) -> String {
    format!(
        "this folder has rules for agents in {}, which do not count until you trust them: gantry permissions trust",
        safe::line(&file.path)
    )
}

/// The outcome of a question, in a few words on one line; `by` is empty where no person answered.
pub fn answered(answer: &Answer, by: &str) -> String {
    let words = match answer {
        Answer::Allowed {
            rule: Some(rule), ..
        } => format!("allowed, and always {rule}"),
        Answer::Allowed {
            command: Some(command),
            ..
        } => format!("allowed as: {command}"),
        Answer::Allowed { .. } => "allowed".to_owned(),
        Answer::Denied { words: Some(words) } => format!("not allowed: {words}"),
        Answer::Denied { words: None } => "not allowed".to_owned(),
        Answer::Said { text } => format!("answered: {text}"),
        Answer::Unanswered { because } => match because {
            Unanswered::NobodyThere => "nobody could be asked, so it did not run".to_owned(),
            Unanswered::Deadline => "nobody answered in time, so it did not run".to_owned(),
            Unanswered::Changed => "it changed, so it did not run".to_owned(),
            Unanswered::Stopped => "stopped before anybody answered".to_owned(),
        },
    };
    match by {
        "" => safe::line(&words),
        by => safe::line(&format!("{words} (by {by})")),
    }
}

/// The words on a conversation that was compacted, from and to so many tokens.
pub fn compacted(before: u64, after: u64, no_summary: Option<&str>) -> String {
    let without = no_summary.map_or_else(String::new, |why| {
        format!(" without a summary by the model ({why})")
    });
    safe::line(&format!(
        "compacted from about {} tokens to {}{without}; nothing is lost: the model can look all of it up again",
        tokens(before),
        tokens(after)
    ))
}

/// The text that stands in for the beginning of a conversation.
pub(super) fn kept(carried: &str, summary: &str) -> String {
    /// The most lines of it that are shown.
    const MOST_LINES: usize = 60;
    let summary = match summary {
        "" => String::new(),
        summary => format!("\n# Summary by the model\n{summary}"),
    };
    let text = format!("{carried}{summary}");
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines = lines
        .take(MOST_LINES)
        .map(|line| format!("  {}", safe::line(line)));
    lines.collect::<Vec<_>>().join("\n")
}

/// The words on the parts of the conversation that are not sent to the model, by their numbers.
pub fn left_out(results: u32, gone: u32, shortened: u32) -> String {
    let some = |count: u32, one: &str, many: &str| match count {
        0 => None,
        1 => Some(one.to_owned()),
        count => Some(many.replace("{}", &count.to_string())),
    };
    let which = [
        some(
            results,
            "the oldest tool result",
            "the {} oldest tool results",
        ),
        some(
            gone,
            "the oldest message",
            "the {} oldest messages, answers and calls",
        ),
        some(
            shortened,
            "the middle of a long text",
            "the middle of {} long texts",
        ),
    ];
    let which: Vec<_> = which.into_iter().flatten().collect();
    format!("left out {} to fit the model's window", which.join(" and "))
}

/// The change from one to-do list to another.
pub(super) fn todo(before: &[TodoItem], after: &[TodoItem], is_found: bool) -> TodoChange {
    let is_changed = |item: &&TodoItem| !before.contains(item);
    let changed = after.iter().filter(is_changed).map(|item| TodoRow {
        text: safe::line(&item.text),
        state: Some(item.state),
    });
    let is_gone = |item: &&TodoItem| !after.iter().any(|new| new.text == item.text);
    let open = |item: &&TodoItem| item.state != TodoState::Done;
    let gone = before
        .iter()
        .filter(is_gone)
        .filter(open)
        .map(|item| TodoRow {
            text: safe::line(&item.text),
            state: None,
        });
    let done = after.iter().filter(|item| item.state == TodoState::Done);
    TodoChange {
        done: done.count(),
        of: after.len(),
        is_found,
        changed: changed.chain(gone).collect(),
    }
}

/// A to-do list that is not done yet, on one line: how much of it is done, and what comes next.
pub(super) fn todo_line(items: &[TodoItem]) -> Option<String> {
    let is = |state| move |item: &&TodoItem| item.state == state;
    let next = items.iter().find(is(TodoState::Doing));
    let next = next.or_else(|| items.iter().find(is(TodoState::Open)))?;
    let done = items.iter().filter(is(TodoState::Done)).count();
    let next = safe::line(&next.text);
    Some(format!("to-do: {done} of {} done · ▸ {next}", items.len()))
}

/// Another conversation of the user has begun.
pub fn chat_started(title: &str, session: SessionId) -> String {
    format!(
        "a new conversation has begun: {} · /resume {session}",
        safe::line(title)
    )
}

/// An agent of another conversation has begun this one.
pub fn chat_origin(parent: SessionId) -> String {
    format!("an agent of the conversation {parent} has begun this one")
}

/// The worktree of the agent that works here; nothing where it is gone again.
pub fn worktree(worktree: &Worktree, state: WorktreeState) -> Option<String> {
    let (path, branch) = (safe::line(&worktree.path), safe::line(&worktree.branch));
    Some(match state {
        WorktreeState::Made => format!("works in the git worktree {path}, branch {branch}"),
        WorktreeState::Kept => {
            format!("the changes are in the git worktree {path}, branch {branch}")
        }
        WorktreeState::Removed => return None,
    })
}

/// The words on the end of an agent.
pub fn agent_ended(outcome: TurnOutcome, steps: u32, used: u64) -> String {
    let how = match outcome {
        TurnOutcome::Completed => "done",
        TurnOutcome::Failed => "failed",
        TurnOutcome::Cancelled | TurnOutcome::Interrupted => "stopped",
    };
    let steps = match steps {
        1 => "1 step".to_owned(),
        steps => format!("{steps} steps"),
    };
    format!("{how} after {steps}, {} tokens", tokens(used))
}
