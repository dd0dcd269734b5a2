//! A deed as the judgement sees it: its commands, its risk and the reasons.

use shared_types::Risk;

use crate::{
    Deed,
    command::{self, Script, word::Word},
    risk::{self, Assessment, paths},
};

/// A deed that was looked at.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) deed: Deed<'a>,
    /// The commands in it, and their risk.
    pub(super) commands: Option<(Script, Assessment)>,
    pub(super) risk: Risk,
    /// What makes the risk, the gravest first.
    pub(super) reasons: Vec<String>,
    /// True if the words do not tell which programs run.
    pub(super) doubtful: bool,
}

impl<'a> View<'a> {
    pub(super) fn of(deed: &Deed<'a>) -> Self {
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
        };
        match deed {
            Deed::Shell(text) => Self::commands(deed, command::read(text)),
            Deed::Argv(argv) => Self::commands(deed, command::read_argv(argv)),
            Deed::Read(_) => simple(Risk::Low, ""),
            Deed::Write(path) if paths::is_protected(path) => {
                simple(Risk::High, "changes a file that others run or trust")
            }
            Deed::Write(path) if paths::leaves(&Word::text(path)) => {
                simple(Risk::High, "changes a file outside the folder")
            }
            Deed::Write(_) => simple(Risk::Medium, "changes a file"),
            Deed::Fetch(_) => simple(Risk::Medium, "sends an address out"),
            Deed::Tool(_) => simple(Risk::Medium, "has effects that only the tool knows"),
        }
    }

    fn commands(deed: &Deed<'a>, script: Script) -> Self {
        let assessment = risk::assess(&script);
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
        }
    }

    /// Why the words do not tell which programs run.
    pub(super) fn doubt(&self) -> &str {
        let reasons = self
            .commands
            .iter()
            .flat_map(|(_, assessment)| assessment.reasons());
        let doubt = reasons.into_iter().find(|reason| reason.doubt);
        doubt.map_or("cannot be read", |reason| &reason.text)
    }
}
