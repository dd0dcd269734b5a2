//! Options and values that make a known program risky, where the table of words does not suffice.

use shared_types::Risk;

use super::{Reason, programs::subs};
use crate::command::{
    Segment, SegmentInput,
    word::{HoleSource, Word},
};

/// The reasons that a program's options and values give.
pub(super) fn of(segment: &Segment) -> Vec<Reason> {
    let words = segment.arguments();
    let program = segment.program().unwrap_or_default();
    let reason = match program.as_str() {
        "git" => git(words),
        "chmod" => chmod(words),
        "kill" => kill(words),
        "curl" | "wget" | "http" | "https" => return fetch(segment),
        "ssh" | "scp" | "sftp" => proxy(words),
        "less" | "more" | "man" => words
            .iter()
            .any(|word| word.shown().starts_with("+!"))
            .then(|| Reason::doubt("runs a program named in its options")),
        "make" | "gmake" => words
            .iter()
            .any(|word| {
                let text = word.literal().unwrap_or_default();
                word.shown().starts_with("SHELL=") || text.contains("$(")
            })
            .then(|| Reason::doubt("gives make a command")),
        "docker" | "podman" => docker(words),
        "rsync" => words
            .iter()
            .any(|word| !word.shown().starts_with('-') && word.shown().contains(':'))
            .then(|| Reason::own(Risk::High, "sends data or takes commands over the network")),
        _ => None,
    };
    reason.into_iter().collect()
}

/// Settings of git that name no program.
const GIT_SAFE: [&str; 14] = [
    "user.",
    "color.",
    "core.quotepath=",
    "core.autocrlf=",
    "advice.",
    "commit.gpgsign=",
    "init.defaultbranch=",
    "safe.directory=",
    "gc.auto=",
    "log.",
    "diff.renames=",
    "merge.conflictstyle=",
    "pull.rebase=",
    "protocol.version=",
];

/// Settings of git that name a program, an address or a folder of programs.
const GIT_RUNS: [&str; 22] = [
    "alias.",
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.hookspath",
    "core.fsmonitor",
    "core.askpass",
    "core.gitproxy",
    "core.worktree",
    "core.attributesfile",
    "sequence.editor",
    "diff.external",
    "credential.",
    "filter.",
    "url.",
    "include.",
    "includeif.",
    "gpg.",
    "pager.",
    "uploadpack.",
    "init.templatedir",
    "remote.",
];

fn git(words: &[Word]) -> Option<Reason> {
    let runs = || Some(Reason::doubt("sets a program that git runs"));
    for (at, word) in words.iter().enumerate() {
        let shown = word.shown().to_lowercase();
        if shown.starts_with("ext::") {
            return runs();
        }
        let setting = match shown.as_str() {
            "-c" if word.literal() == Some("-c") => {
                words.get(at + 1).map(|next| next.shown().to_lowercase())
            }
            short if word.shown().starts_with("-c") && short.contains('=') => {
                Some(short[2..].to_owned())
            }
            _ => None,
        };
        let after_sub = words[..at]
            .iter()
            .any(|word| matches!(word.literal(), Some("commit" | "switch" | "branch")));
        if setting.is_some_and(|setting| {
            !after_sub && !GIT_SAFE.iter().any(|safe| setting.starts_with(safe))
        }) {
            return runs();
        }
    }
    let subs = subs("git", words, false);
    let names = |text: &String| {
        let text = text.to_lowercase();
        GIT_RUNS.iter().any(|name| text.starts_with(name))
            || text.ends_with(".cmd")
            || text.ends_with(".path")
    };
    let sets = subs.first().is_some_and(|sub| sub == "config")
        && subs.len() > 2
        && subs[1..].iter().any(names);
    let reads = words
        .iter()
        .any(|word| word.shown().starts_with("--get") || word.literal() == Some("--unset"));
    if sets && !reads {
        return runs();
    }
    None
}

fn chmod(words: &[Word]) -> Option<Reason> {
    let wide = |word: &Word| {
        let text = word.shown();
        let octal = text.len() >= 3 && text.chars().all(|c| c.is_digit(8));
        let special = octal && text.len() == 4 && !text.starts_with('0');
        let others = octal && matches!(text.chars().last(), Some('2' | '3' | '6' | '7'));
        let named = [
            "o+w", "a+w", "u+s", "g+s", "+s", "ugo+w", "a=rwx", "o=rwx", "a+rwx", "o+rwx", "u+xs",
            "ug+s",
        ];
        special
            || others
            || named
                .iter()
                .any(|mode| text == *mode || text.starts_with(&format!("{mode},")))
    };
    words
        .iter()
        .any(wide)
        .then(|| Reason::own(Risk::High, "gives rights to others"))
}

fn kill(words: &[Word]) -> Option<Reason> {
    let targets: Vec<_> = words
        .iter()
        .skip_while(|word| {
            let shown = word.shown();
            shown.starts_with('-') && shown != "-1"
        })
        .collect();
    let all = |word: &&Word| matches!(word.literal(), Some("-1" | "1" | "0"));
    let every = targets.last().is_some_and(all) && words.last().is_some_and(|word| all(&word));
    every.then(|| Reason::own(Risk::High, "stops processes of others"))
}

fn proxy(words: &[Word]) -> Option<Reason> {
    let runs = |word: &Word| {
        let text = word.shown().to_lowercase();
        [
            "proxycommand",
            "localcommand",
            "knownhostscommand",
            "matchexec",
        ]
        .iter()
        .any(|name| text.contains(name))
    };
    words
        .iter()
        .any(runs)
        .then(|| Reason::doubt("runs a program named in its options"))
}

/// Mounts and name spaces by which a container is no container.
fn docker(words: &[Word]) -> Option<Reason> {
    let host = |word: &Word| {
        let text = word.shown();
        let text = text
            .strip_prefix("--volume=")
            .or(text.strip_prefix("-v"))
            .unwrap_or(&text);
        text.starts_with("/:")
            || text.contains("docker.sock")
            || text.starts_with("/etc:")
            || text.contains("=host")
            || text.contains("source=/,")
            || text.contains("src=/,")
            || text.starts_with("/root")
            || text.starts_with("~:")
    };
    words
        .iter()
        .any(host)
        .then(|| Reason::own(Risk::High, "gives a container the host"))
}

/// Options of programs that fetch, by which they send data.
const SENDS: [&str; 17] = [
    "-d",
    "-F",
    "-T",
    "-u",
    "--data",
    "--data-binary",
    "--data-raw",
    "--data-urlencode",
    "--form",
    "--upload-file",
    "--json",
    "--user",
    "--post-data",
    "--post-file",
    "--body-data",
    "--body-file",
    "--form-string",
];

fn fetch(segment: &Segment) -> Vec<Reason> {
    let words = segment.arguments();
    let wget = segment.program().as_deref() == Some("wget");
    let option = |word: &Word| {
        let shown = word.shown();
        let name = shown.split('=').next().unwrap_or_default();
        let short =
            !wget && !shown.starts_with("--") && SENDS[..4].iter().any(|o| shown.starts_with(o));
        let long = shown.starts_with("--") && SENDS.contains(&name);
        let cluster = !wget
            && shown.starts_with('-')
            && !shown.starts_with("--")
            && shown.len() < 6
            && shown.chars().skip(1).all(|c| c.is_ascii_alphabetic())
            && shown.ends_with(['d', 'F', 'T']);
        short
            || long
            || cluster
            || (name.len() > 5
                && name.starts_with("--")
                && SENDS.iter().any(|o| o.starts_with(name)))
    };
    let method = words.windows(2).any(|two| {
        matches!(two[0].literal(), Some("-X" | "--request" | "--method"))
            && !matches!(two[1].literal(), Some("GET" | "HEAD" | "OPTIONS"))
    }) || words.iter().any(|word| {
        [
            "-XPOST",
            "-XPUT",
            "-XDELETE",
            "-XPATCH",
            "--request=P",
            "--request=D",
            "--method=P",
            "--method=D",
        ]
        .iter()
        .any(|start| word.shown().starts_with(start))
    });
    let piped = words.iter().any(|word| word.shown().contains("@-"))
        && matches!(segment.input, SegmentInput::Pipe(_));
    let mut reasons = Vec::new();
    if (words.iter().any(option) || method || piped) && !loopback(words) {
        reasons.push(Reason::own(Risk::High, "sends data out"));
    }
    let secret = |name: &str| {
        let name = name.to_uppercase();
        ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL"]
            .iter()
            .any(|word| name.contains(word))
    };
    let leaks = words
        .iter()
        .flat_map(Word::holes)
        .any(|hole| match &hole.of {
            HoleSource::Output => true,
            HoleSource::Variable(name) => secret(name),
            _ => false,
        });
    if leaks && !loopback(words) {
        reasons.push(Reason::foreign(
            Risk::High,
            "puts what only the run knows into an address",
        ));
    }
    reasons
}

/// True if every address among the words is of this machine.
fn loopback(words: &[Word]) -> bool {
    let own = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"];
    let mut found = false;
    for word in words {
        let text = word.shown();
        let bare = text
            .split_once("://")
            .map_or(text.as_str(), |(_, rest)| rest);
        let host = bare.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        if own.contains(&host) {
            found = true;
        } else if text.contains("://")
            || word
                .holes()
                .any(|hole| matches!(hole.of, HoleSource::Variable(_)))
                && text.starts_with('$')
        {
            return false;
        }
    }
    found
}
