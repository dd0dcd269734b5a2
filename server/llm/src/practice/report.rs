//! The texts of the practice model.

use super::{Done, commands::PracticeStep};

/// Most lines that are quoted of one result.
const MAX_LINES: usize = 20;

/// Longest quoted line, in characters.
const MAX_LINE_CHARS: usize = 200;

const PREFIX: &str = "Practice model (no AI): ";

/// The results of the commands.
pub(super) fn summary(commands: &[PracticeStep], done: &[Done]) -> String {
    let parts: Vec<String> = commands
        .iter()
        .zip(done)
        .map(|(command, done)| one(command, done))
        .collect();
    let mut text = format!("{PREFIX}{}", parts.join("\n\n"));
    let left = commands.len().saturating_sub(done.len());
    if left > 0 {
        text.push_str(&format!("\n\nBecause of that I left out {}.", steps(left)));
    }
    text
}

/// The nature of the practice model, its commands, and the way to a real model.
pub(super) fn help(not_understood: &str) -> String {
    let opening = match shortened(not_understood) {
        line if line.is_empty() => "there is nothing to do.".to_owned(),
        line => format!("I do not understand \"{line}\"."),
    };
    format!(
        "{PREFIX}{opening}

I am a small interpreter for trying things out, not an AI. I understand one command a line, or several joined by \"then\":

  run ls -la
  run in the background: make
  tasks
  wait for task 1
  stop task 1
  read README.md
  write notes.txt: some text
  edit notes.txt: some => other
  search TODO in src
  find **/*.rs
  list src
  what is in this folder?
  agent: find **/*.rs
  agent in the background: run make
  call mcp__SERVER__TOOL {{\"name\": \"value\"}}

For a real model, set OPENAI_API_KEY (and OPENAI_BASE_URL for a server other than OpenAI's) and GANTRY_MODEL, in the environment or in gantry.toml, and start the server again."
    )
}

/// The session has no tool for a command.
pub(super) fn no_tool(command: &PracticeStep) -> String {
    format!(
        "{PREFIX}this needs the tool {}, which this session does not have.",
        command.tool()
    )
}

fn one(command: &PracticeStep, done: &Done) -> String {
    let what = match command {
        PracticeStep::Run { command, .. } => format!("run `{}`", shortened(command)),
        PracticeStep::Tasks => "see what runs in the background".to_owned(),
        PracticeStep::Wait { task } => format!("wait for task {task}"),
        PracticeStep::Stop { task } => format!("stop task {task}"),
        PracticeStep::Read { path } => format!("read {path}"),
        PracticeStep::Write { path, .. } => format!("write {path}"),
        PracticeStep::Edit { path, .. } => format!("edit {path}"),
        PracticeStep::Search { pattern, .. } => format!("search for `{}`", shortened(pattern)),
        PracticeStep::Find { pattern } => format!("find {pattern}"),
        PracticeStep::List { path: Some(path) } => format!("list {path}"),
        PracticeStep::List { path: None } => "list this folder".to_owned(),
        PracticeStep::Agent { task, .. } => format!("have an agent `{}`", shortened(task)),
        PracticeStep::Call { tool, .. } => format!("call {tool}"),
    };
    let how = match (done.failed, done.text.trim().is_empty()) {
        (true, true) => return format!("I could not {what}."),
        (true, false) => format!("I could not {what}:"),
        (false, true) => return format!("I asked to {what}, and there was no output."),
        (false, false) => format!("I asked to {what}, and this came back:"),
    };
    format!("{how}\n{}", quoted(done.text.trim_end()))
}

fn quoted(text: &str) -> String {
    let mut lines = text.lines();
    let mut quoted: Vec<String> = lines.by_ref().take(MAX_LINES).map(shortened).collect();
    // The line about omitted bytes of a long result says more than a count of it.
    let (cuts, left): (Vec<&str>, Vec<&str>) = lines.partition(|line| is_cut(line));
    if !left.is_empty() {
        quoted.push(format!("… and {} more lines", left.len()));
    }
    quoted.extend(cuts.into_iter().map(shortened));
    quoted.join("\n")
}

/// True if this line stands for bytes that were left out of a result.
fn is_cut(line: &str) -> bool {
    line.starts_with("[… ") && line.ends_with(" …]") && line.contains(" bytes left out")
}

fn shortened(line: &str) -> String {
    let mut chars = line.chars();
    let mut short: String = chars.by_ref().take(MAX_LINE_CHARS).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

fn steps(count: usize) -> String {
    match count {
        1 => "the last step".to_owned(),
        more => format!("the last {more} steps"),
    }
}
