//! Files that a command writes, and the variables that it sets.

use shared_types::Risk;

use super::{
    Reason, brief,
    paths::{is_nowhere, is_protected, is_unbounded, leaves},
    programs::has_option,
};
use crate::command::{
    Segment,
    word::{HoleSource, Word},
};

/// The reasons that files and variables give.
pub(super) fn of(segment: &Segment) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for redirect in segment.redirects.iter().filter(|redirect| redirect.writes) {
        reasons.extend(target(&redirect.target));
    }
    let program = segment.program().unwrap_or_default();
    for word in written(&program, segment.arguments()) {
        reasons.extend(target(word).filter(|reason| reason.risk == Risk::High));
    }
    reasons.extend(removal(&program, segment.arguments()));
    reasons.extend(copied_program(&program, segment.arguments()));
    for (name, value) in &segment.assigned {
        // `IFS=, read a b` splits that one line and nothing else.
        if !(name == "IFS" && program == "read") {
            reasons.extend(variable(name, value));
        }
    }
    if matches!(
        program.as_str(),
        "export" | "declare" | "typeset" | "local" | "readonly" | "env" | "sudo"
    ) {
        for word in segment.arguments() {
            if let Some((name, value)) = word.assignment() {
                reasons.extend(variable(name, &value));
            }
        }
    }
    if NAMES_VARIABLES.contains(&program.as_str()) {
        for word in segment.arguments() {
            let shown = word.shown();
            let name = shown.split('[').next().unwrap_or_default();
            reasons.extend(variable(name, &Word::text("…")));
        }
    }
    reasons
}

/// The reason of a write to a file.
fn target(word: &Word) -> Option<Reason> {
    if is_nowhere(word) {
        return None;
    }
    let shown = brief(word);
    Some(if is_protected(&word.shown()) {
        Reason::foreign(
            Risk::High,
            format!("changes {shown}, which others run or trust"),
        )
    } else if leaves(word) {
        Reason::foreign(Risk::High, format!("writes outside the folder ({shown})"))
    } else if word.holes().any(|hole| hole.of == HoleSource::Output) {
        Reason::foreign(
            Risk::Medium,
            "writes a file whose name only the run decides",
        )
    } else {
        Reason::foreign(Risk::Medium, format!("writes {shown}"))
    })
}

/// The words that name files which the program changes.
fn written<'a>(program: &str, words: &'a [Word]) -> Vec<&'a Word> {
    let files = || words.iter().filter(|word| !word.shown().starts_with('-'));
    match program {
        "tee" | "touch" | "mkdir" | "truncate" | "rm" | "rmdir" | "unlink" | "chmod" | "chown"
        | "mkfifo" => files().collect(),
        "mv" => files().collect(),
        "cp" | "install" | "ln" | "rsync" => {
            let named = words
                .iter()
                .position(|word| matches!(word.literal(), Some("-t" | "--target-directory")));
            named
                .and_then(|at| words.get(at + 1))
                .into_iter()
                .chain(files().next_back())
                .collect()
        }
        "sed" | "gsed" if has_option(words, "-i") || has_option(words, "--in-place") => {
            files().collect()
        }
        "find" if has_option(words, "-delete") => files().take(1).collect(),
        "curl" | "wget" | "sort" | "tree" => {
            let named = |word: &&Word| {
                matches!(
                    word.literal(),
                    Some("-o" | "-O" | "--output" | "--output-document" | "-P")
                )
            };
            let starts = words.iter().enumerate().filter(|(_, word)| named(word));
            starts
                .filter_map(|(at, _)| words.get(at + 1))
                .filter(|word| word.literal() != Some("-"))
                .collect()
        }
        "tar" | "unzip" => {
            let named = |word: &&Word| matches!(word.literal(), Some("-C" | "-d" | "--directory"));
            let starts = words.iter().enumerate().filter(|(_, word)| named(word));
            starts.filter_map(|(at, _)| words.get(at + 1)).collect()
        }
        _ => Vec::new(),
    }
}

/// The reason of `rm -r` and `rm -f` with targets that the words do not bound.
fn removal(program: &str, words: &[Word]) -> Option<Reason> {
    let forced = ["-r", "-R", "-f", "--recursive", "--force"]
        .iter()
        .any(|option| has_option(words, option));
    let root = has_option(words, "--no-preserve-root");
    let mut targets = words.iter().filter(|word| !word.shown().starts_with('-'));
    let wide = targets.clone().any(is_unbounded) || (targets.next().is_none() && forced);
    (program == "rm" && (root || (forced && wide))).then(|| {
        Reason::own(
            Risk::High,
            "removes files whose place the words do not bound",
        )
    })
}

/// The reason of a program that gets a second name.
fn copied_program(program: &str, words: &[Word]) -> Option<Reason> {
    let system = |word: &Word| {
        word.literal()
            .is_some_and(|text| text.contains("bin/") && super::of_the_system(text))
            || word.holes().any(|hole| hole.of == HoleSource::Output)
    };
    let copies = matches!(program, "cp" | "ln" | "mv" | "install");
    (copies && words.iter().any(system)).then(|| Reason::doubt("gives a program another name"))
}

/// Builtins that set the variables which their words name.
const NAMES_VARIABLES: [&str; 6] = [
    "read",
    "printf",
    "mapfile",
    "readarray",
    "getopts",
    "declare",
];

/// Variables that change which programs run, or what they load.
const LOADED: [&str; 43] = [
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "PATH",
    "IFS",
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "SHELL",
    "HOME",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXEC_PATH",
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_ASKPASS",
    "GIT_PROXY_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_TEMPLATE_DIR",
    "SSH_ASKPASS",
    "PAGER",
    "MANPAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "LESSOPEN",
    "LESSCLOSE",
    "PYTHONSTARTUP",
    "PERL5OPT",
    "PERL5LIB",
    "RUBYOPT",
    "GCONV_PATH",
    "RUSTC_WRAPPER",
    "RUSTC",
    "HISTFILE",
    "BASH_CMDS",
    "BASH_ALIASES",
];

/// Values by which people turn a pager, an editor or a wrapper off.
const HARMLESS: [&str; 7] = ["", "cat", "less", "true", ":", "sccache", "/bin/true"];

/// The reason of an assignment.
fn variable(name: &str, value: &Word) -> Option<Reason> {
    let shown = value.shown();
    if shown.contains("$(") && value.literal().is_some() || shown.contains('`') {
        return Some(Reason::doubt("keeps a command in a variable"));
    }
    let settings = name.starts_with("GIT_CONFIG")
        || (name.starts_with("CARGO_TARGET_") && name.ends_with("_RUNNER"));
    let loads = name == "NODE_OPTIONS"
        && ["--require", "-r ", "--import", "--loader"]
            .iter()
            .any(|o| shown.contains(o));
    let harmless = HARMLESS.contains(&shown.as_str()) && name != "PATH";
    let loaded = LOADED.contains(&name) && !harmless;
    (loaded || settings || loads)
        .then(|| Reason::doubt(format!("sets {name}, which changes what programs run")))
}
