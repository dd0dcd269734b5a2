//! The rule that would allow a deed the next time.
//!
//! A suggestion is as wide as a person means it: `cargo test *`, not `cargo *`. Programs whose
//! arguments may be anything get their exact text, and what only the run decides gets no rule.

use super::{cover, view::AssessedDeed};
use crate::{
    Deed,
    command::{Segment, is_shell, word::Word, wrapper},
    risk::{code_in_words, programs::has_subs},
    rule::{Rule, SERVER_PREFIX, place},
};

/// Programs whose first word does not bound what they do.
const ANYTHING: [&str; 36] = [
    "sudo", "doas", "su", "pkexec", "rm", "curl", "wget", "ssh", "scp", "sftp", "rsync", "dd",
    "eval", "source", ".", "find", "fd", "chmod", "chown", "kill", "pkill", "killall", "nc",
    "ncat", "socat", "tar", "cp", "mv", "ln", "install", "tee", "crontab", "gh", "mount", "trap",
    "alias",
];

/// The rule that would allow the deed, and nothing much wider.
pub(super) fn rule(view: &AssessedDeed) -> Option<Rule> {
    match view.deed {
        Deed::Shell(_) | Deed::Argv(_) => prefix(view).or_else(|| exact(view)),
        Deed::Write(path) => folder(view, path),
        Deed::Fetch(url) => {
            place::host(url).and_then(|host| format!("WebFetch(domain:{host})").parse().ok())
        }
        Deed::Tool(name) if name.starts_with(SERVER_PREFIX) => name.parse().ok(),
        Deed::Tool(name) => format!("Tool({name})").parse().ok(),
        Deed::Read(_) | Deed::Search(_) => None,
    }
    .filter(|rule| cover::covering([rule].into_iter(), |rule| *rule, view).is_some())
}

/// `Shell(PROGRAM SUB *)`, if the deed has one command that matters.
fn prefix(view: &AssessedDeed) -> Option<Rule> {
    let (script, assessment) = view.commands.as_ref()?;
    let mut risky = script
        .segments
        .iter()
        .zip(&assessment.segments)
        .filter(|(_, reasons)| !reasons.is_empty());
    let (segment, reasons) = risky.next()?;
    let one = risky.next().is_none() && reasons.iter().all(|reason| reason.own);
    let words = one.then(|| words(segment)).flatten()?;
    format!("Shell({} *)", words.join(" ")).parse().ok()
}

/// The words of a command that a rule may be made of.
fn words(segment: &Segment) -> Option<Vec<String>> {
    let program = segment
        .words
        .first()?
        .literal()
        .filter(|word| plain(word))?;
    let name = segment.program()?;
    let bounded = !is_shell(&name)
        && !ANYTHING.contains(&name.as_str())
        && wrapper(segment).is_none()
        && !program.starts_with('/');
    if !bounded {
        return None;
    }
    let mut words = vec![program.to_owned()];
    if code_in_words(&name) {
        // The file that an interpreter runs, or its module, bounds what it does.
        match segment.arguments() {
            [option, module, ..] if option.literal() == Some("-m") => {
                words.extend(["-m".to_owned(), known(module)?])
            }
            [file, ..] if !file.shown().starts_with('-') => words.push(known(file)?),
            _ => return None,
        }
        return Some(words);
    }
    if let Some(most) = has_subs(&name) {
        let subs = crate::risk::programs::subs(&name, segment.arguments(), false);
        let first = subs.first().filter(|sub| plain(sub))?.clone();
        let nested = matches!(
            first.as_str(),
            "run" | "compose" | "mod" | "pip" | "remote" | "stash" | "exec"
        );
        words.push(first);
        if nested && most > 1 {
            words.push(subs.get(1).filter(|sub| plain(sub))?.clone());
        }
    }
    Some(words)
}

fn known(word: &Word) -> Option<String> {
    word.literal().filter(|text| plain(text)).map(str::to_owned)
}

/// True if a word means itself in a rule.
fn plain(word: &str) -> bool {
    !word.is_empty()
        && !word.starts_with('=')
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./:@+".contains(c))
}

/// `Shell(=TEXT)`, if the text says everything.
fn exact(view: &AssessedDeed) -> Option<Rule> {
    let (script, _) = view.commands.as_ref()?;
    let open = |segment: &Segment| {
        let words = segment
            .words
            .iter()
            .chain(segment.redirects.iter().map(|redirect| &redirect.target));
        let assigned = segment.assigned.iter().map(|(_, value)| value);
        words
            .chain(assigned)
            .any(|word| word.holes().next().is_some())
    };
    if view.doubtful || script.segments.iter().any(open) {
        return None;
    }
    format!("Shell(={})", view.deed.command()?).parse().ok()
}

/// `Write(FOLDER/**)`; the file itself at the root and where others run or trust it.
fn folder(view: &AssessedDeed, path: &str) -> Option<Rule> {
    let folder = path.rsplit_once('/').map(|(folder, _)| folder);
    let pattern = match folder {
        Some(folder) if view.risk < shared_types::Risk::High => {
            format!("{folder}/**")
        }
        _ => path.to_owned(),
    };
    format!("Write({pattern})").parse().ok()
}
