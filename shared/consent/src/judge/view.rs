//! A deed as the judgement sees it: its commands, its risk and the reasons.

use shared_types::Risk;

use crate::{
    Deed,
    command::{self, Script, word::Word},
    risk::{self, Assessment, paths},
    rule::SERVER_PREFIX,
};

/// A deed that was looked at.
#[derive(Debug)]
pub(super) struct AssessedDeed<'a> {
    pub(super) deed: Deed<'a>,
    /// The commands in it, and their risk.
    pub(super) commands: Option<(Script, Assessment)>,
    pub(super) risk: Risk,
    /// The reasons for the risk, the gravest first.
    pub(super) reasons: Vec<String>,
    /// True if the words do not tell which programs run.
    pub(super) doubtful: bool,
    /// The folders in which its commands may work, as far as the words tell.
    pub(super) folders: Folders,
}

/// The folders in which commands may work.
#[derive(Debug, Default)]
pub(super) struct Folders {
    /// The folder in which they start, and those that a `cd` goes to; none for the root of the sandbox.
    pub(super) known: Vec<String>,
    /// True if a `cd` goes where only the run decides.
    pub(super) open: bool,
}

impl Folders {
    fn of(script: &Script, start: &str) -> Self {
        let start = paths::tidy_folder(start);
        let mut folders = Self::default();
        if !start.is_empty() {
            folders.known.push(start.clone());
        }
        let moves = |program: &str| matches!(program, "cd" | "pushd");
        for segment in &script.segments {
            if !segment.program().is_some_and(|program| moves(&program)) {
                continue;
            }
            match segment.arguments().last().map(Word::literal) {
                Some(Some(to)) => {
                    folders.known.push(paths::tidy_folder(to));
                    if !to.starts_with('/') && !start.is_empty() {
                        folders
                            .known
                            .push(paths::tidy_folder(&format!("{start}/{to}")));
                    }
                }
                Some(None) => folders.open = true,
                None => {}
            }
        }
        folders
    }
}

impl<'a> AssessedDeed<'a> {
    pub(super) fn of(deed: &Deed<'a>, folder: &str) -> Self {
        let simple = |risk, reason: &str| Self {
            deed: *deed,
            commands: None,
            risk,
            reasons: if reason.is_empty() {
                Vec::new()
            } else {
                vec![reason.to_owned()]
            },
            doubtful: false,
            folders: Folders::default(),
        };
        match deed {
            Deed::Shell(text) => Self::commands(deed, command::read(text), folder),
            Deed::Argv(argv) => Self::commands(deed, command::read_argv(argv), folder),
            Deed::Read(_) | Deed::Search(_) => simple(Risk::Low, ""),
            Deed::Write(path) if paths::is_protected(path) => {
                simple(Risk::High, "changes a file that others run or trust")
            }
            Deed::Write(path) if paths::leaves(&Word::text(path)) => {
                simple(Risk::High, "changes a file outside the folder")
            }
            Deed::Write(_) => simple(Risk::Medium, "changes a file"),
            Deed::Fetch(_) => simple(Risk::Medium, "sends an address out"),
            Deed::Tool(name) if name.starts_with(SERVER_PREFIX) => {
                simple(Risk::Medium, "has effects that only its tool server knows")
            }
            Deed::Tool(_) => simple(Risk::Medium, "has effects that only the tool knows"),
        }
    }

    fn commands(deed: &Deed<'a>, script: Script, folder: &str) -> Self {
        let folders = Folders::of(&script, folder);
        let mut assessment = risk::assess(&script);
        assessment.whole.extend(risk::of_folders(&folders.known));
        assessment.whole.extend(risk::of_controls(deed));
        let mut reasons: Vec<String> = Vec::new();
        for reason in assessment.reasons() {
            if !reasons.contains(&reason.text) {
                reasons.push(reason.text.clone());
            }
        }
        Self {
            deed: *deed,
            risk: assessment.risk(),
            doubtful: assessment.doubtful(),
            reasons,
            commands: Some((script, assessment)),
            folders,
        }
    }

    /// The reason why the words do not tell which programs run.
    pub(super) fn doubt(&self) -> &str {
        let reasons = self
            .commands
            .iter()
            .flat_map(|(_, assessment)| assessment.reasons());
        let doubt = reasons.into_iter().find(|reason| reason.doubt);
        doubt.map_or("cannot be read", |reason| &reason.text)
    }
}
