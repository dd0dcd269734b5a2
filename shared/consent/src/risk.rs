//! The risk of commands, and the reasons for it.
//!
//! The risk of a program is data (`programs.txt`). Code adds what depends on more than words in
//! their places: targets of `rm`, files that are written, addresses, inline code, assignments.
//! A reason is *own* if it comes from the program that runs, so that an allow rule for the program
//! accepts it. Other reasons (a write outside, `LD_PRELOAD=`) are not part of what the rule names.

mod code;
mod moves;
mod options;
pub(crate) mod paths;
pub(crate) mod programs;
mod writes;

use std::collections::HashSet;

pub(crate) use code::takes_code as code_in_words;
use shared_types::Risk;

use crate::{
    Deed,
    command::{Script, Segment, word::Word},
};

/// Something that makes a command risky.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) risk: Risk,
    /// A few words that complete "it …": "sends commits to a remote".
    pub(crate) text: String,
    /// True if an allow rule for the program accepts it.
    pub(crate) own: bool,
    /// True if the words do not tell which programs run.
    pub(crate) doubt: bool,
}

impl Reason {
    fn own(risk: Risk, text: impl Into<String>) -> Self {
        Self {
            risk,
            text: text.into(),
            own: true,
            doubt: false,
        }
    }

    fn foreign(risk: Risk, text: impl Into<String>) -> Self {
        Self {
            own: false,
            ..Self::own(risk, text)
        }
    }

    fn doubt(text: impl Into<String>) -> Self {
        Self {
            doubt: true,
            ..Self::foreign(Risk::High, text)
        }
    }
}

/// The risk of a script.
#[derive(Debug)]
pub(crate) struct Assessment {
    /// The reasons of each segment, without those that are low.
    pub(crate) segments: Vec<Vec<Reason>>,
    /// The reasons that belong to no single segment.
    pub(crate) whole: Vec<Reason>,
}

impl Assessment {
    /// Every reason, the gravest first.
    pub(crate) fn reasons(&self) -> Vec<&Reason> {
        let mut all: Vec<_> = self
            .whole
            .iter()
            .chain(self.segments.iter().flatten())
            .collect();
        all.sort_by_key(|reason| std::cmp::Reverse(reason.risk));
        all
    }

    /// The highest risk.
    pub(crate) fn risk(&self) -> Risk {
        self.reasons()
            .first()
            .map_or(Risk::Low, |reason| reason.risk)
    }

    /// True if the words do not tell which programs run.
    pub(crate) fn doubtful(&self) -> bool {
        self.reasons().iter().any(|reason| reason.doubt)
    }
}

/// The programs that send to, or fetch from, other machines.
const NETWORK: [&str; 16] = [
    "curl", "wget", "nc", "ncat", "netcat", "socat", "scp", "sftp", "rsync", "ssh", "ftp",
    "telnet", "http", "https", "aws", "mail",
];

/// Assesses every segment of a script, and the script as a whole.
pub(crate) fn assess(script: &Script) -> Assessment {
    let mut whole = Vec::new();
    if let Some(unread) = script.unread {
        whole.push(Reason::doubt(format!("cannot be read: {}", unread.0)));
    }
    if script.bomb {
        whole.push(Reason::foreign(
            Risk::High,
            "multiplies processes without end",
        ));
    }
    let network = |segment: &Segment| {
        segment
            .program()
            .is_some_and(|p| NETWORK.contains(&p.as_str()))
    };
    let sends = script.segments.iter().any(network);
    let words = || {
        script.segments.iter().flat_map(|segment| {
            segment
                .words
                .iter()
                .chain(segment.redirects.iter().map(|r| &r.target))
        })
    };
    if words().any(paths::is_secret) {
        whole.push(Reason::foreign(Risk::High, "touches credentials"));
    } else if sends && words().any(paths::is_private) {
        whole.push(Reason::foreign(Risk::High, "may send secrets away"));
    }
    whole.extend(runs_what_it_fetched(script));
    whole.extend(moves::of(script));
    let segments = script
        .segments
        .iter()
        .map(|segment| of_segment(segment, script))
        .collect();
    Assessment { segments, whole }
}

/// The reasons that the folders give in which commands work: a plain name in one of them is not plain.
pub(crate) fn of_folders(folders: &[String]) -> Vec<Reason> {
    let reasons = folders.iter().filter_map(|folder| {
        let inside = format!("{folder}/x");
        let shown = brief(&Word::text(folder));
        if paths::is_secret(&Word::text(&inside)) {
            return Some(Reason::foreign(
                Risk::High,
                format!("works in {shown}, where credentials lie"),
            ));
        }
        let trusted = paths::is_protected(&inside) || paths::is_protected(folder);
        trusted.then(|| {
            Reason::foreign(
                Risk::High,
                format!("works in {shown}, whose files others run or trust"),
            )
        })
    });
    reasons.collect()
}

/// The reason of a command with control characters: a terminal does not show all of it.
pub(crate) fn of_controls(deed: &Deed) -> Option<Reason> {
    let hides = |text: &str| {
        let mut letters = text.chars();
        letters.any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t'))
    };
    let hidden = match deed {
        Deed::Shell(text) => hides(text),
        Deed::Argv(words) => words.iter().any(|word| hides(word)),
        _ => false,
    };
    hidden.then(|| Reason::doubt("has control characters, which hide a part of it from people"))
}

/// The reasons of one segment.
fn of_segment(segment: &Segment, script: &Script) -> Vec<Reason> {
    let mut reasons: Vec<_> = of_program(segment).into_iter().collect();
    reasons.extend(options::of(segment));
    reasons.extend(code::of(segment, script));
    reasons.extend(writes::of(segment));
    reasons.retain(|reason| reason.risk > Risk::Low);
    reasons
}

/// The folders of the system's programs.
const SYSTEM: [&str; 9] = [
    "/bin/",
    "/usr/bin/",
    "/usr/local/bin/",
    "/sbin/",
    "/usr/sbin/",
    "/usr/local/sbin/",
    "/opt/homebrew/bin/",
    "/snap/bin/",
    "/nix/store/",
];

/// True if a program word names a program of the system: by its bare name, or in one of its folders.
pub(crate) fn of_the_system(word: &str) -> bool {
    !word.contains('/')
        || (SYSTEM.iter().any(|folder| word.starts_with(folder)) && !word.contains("/../"))
}

/// The reason that the program itself gives.
fn of_program(segment: &Segment) -> Option<Reason> {
    let first = segment.words.first()?;
    let Some(program) = segment.program() else {
        return Some(Reason::doubt("runs a program that only the run decides"));
    };
    if !program.is_ascii() {
        return Some(Reason::doubt("has a program name with unusual letters"));
    }
    let asks = [Some("--version"), Some("--help"), Some("-V")];
    let system = of_the_system(&first.shown());
    let known = programs::look_up(segment);
    match known {
        _ if system && segment.words.len() == 2 && asks.contains(&segment.words[1].literal()) => {
            None
        }
        Some(known) if known.risk == Risk::Low && system => None,
        Some(known) if known.doubt => Some(Reason::doubt(known.reason)),
        Some(known) if known.risk > Risk::Low => Some(Reason::own(known.risk, known.reason)),
        _ => Some(Reason::own(Risk::Medium, format!("runs {}", brief(first)))),
    }
}

/// A word for people: not longer than a name.
fn brief(word: &Word) -> String {
    word.shown()
        .chars()
        .filter(|c| !c.is_control())
        .take(40)
        .collect()
}

/// The reason of a script that fetches a file and runs it.
fn runs_what_it_fetched(script: &Script) -> Option<Reason> {
    let fetches = script.segments.iter().filter(|segment| {
        segment
            .program()
            .is_some_and(|name| matches!(name.as_str(), "curl" | "wget"))
    });
    let mut files = HashSet::new();
    for segment in fetches {
        let words = segment.arguments().iter().filter_map(Word::literal);
        // The last part of an address is the file's name where none is given.
        files.extend(words.flat_map(|word| [word, word.rsplit('/').next().unwrap_or(word)]));
        files.extend(segment.redirects.iter().filter_map(|r| r.target.literal()));
    }
    files.retain(|file| !file.is_empty() && !file.starts_with('-'));
    let same = |word: &Word| {
        word.literal().is_some_and(|text| {
            files.contains(text) || files.contains(text.trim_start_matches("./"))
        })
    };
    let runs = |segment: &Segment| {
        let program = segment.program().unwrap_or_default();
        let starts =
            matches!(program.as_str(), "chmod" | "source" | ".") || code::interprets(&program);
        // The shell finds a file of the folder only by a path.
        let by_path = |word: &&Word| word.shown().contains('/');
        segment.words.first().filter(by_path).is_some_and(same)
            || (starts && segment.arguments().iter().any(same))
    };
    script
        .segments
        .iter()
        .any(runs)
        .then(|| Reason::doubt("runs what it fetched"))
}
