//! The texts of files that a policy denies to be read, left out of the results of requests that name only a folder.

use std::collections::HashSet;

use shared_consent::{Decision, Deed, Terms, judge};
use shared_sandbox::{FileFailure, Grepped, Outcome, Skipped, Surveyed};
use shared_types::{Isolation, Mode};

use super::Policy;

impl Policy {
    /// Leaves the texts of denied files out of a result. It counts or names those files as ones that were not read.
    pub(super) fn hide(&self, outcome: &mut Outcome) {
        match outcome {
            Outcome::Grepped(grepped) => self.hide_lines(grepped),
            Outcome::Surveyed(surveyed) => self.hide_instructions(surveyed),
            _ => {}
        }
    }

    fn hide_lines(&self, grepped: &mut Grepped) {
        let mut hidden = HashSet::new();
        grepped.matches.retain(|found| {
            let is_denied = self.denies_reading(&found.path);
            if is_denied {
                hidden.insert(found.path.clone());
            }
            !is_denied
        });
        grepped.more_skipped += hidden.len() as u64;
    }

    fn hide_instructions(&self, surveyed: &mut Surveyed) {
        let unread = &mut surveyed.unread;
        for files in [&mut surveyed.instructions, &mut surveyed.extensions] {
            files.retain(|file| {
                let is_denied = self.denies_reading(&file.path);
                if is_denied {
                    let path = file.path.clone();
                    let failure = FileFailure::Denied { path: path.clone() };
                    unread.push(Skipped { path, failure });
                }
                !is_denied
            });
        }
        if let Some(denied) = surveyed
            .project
            .take_if(|file| self.denies_reading(&file.path))
        {
            let path = denied.path;
            let failure = FileFailure::Denied { path: path.clone() };
            surveyed.unread.push(Skipped { path, failure });
        }
    }

    fn denies_reading(&self, path: &str) -> bool {
        let terms = Terms {
            mode: Mode::Full,
            ceiling: None,
            isolation: &Isolation::none(),
            folder: "",
            rules: &self.denials,
        };
        judge(&Deed::Read(path), &terms).decision == Decision::Deny
    }
}

#[cfg(test)]
mod tests {
    use shared_sandbox::{GrepMatch, Instructions, ProjectFile};

    use super::*;
    use crate::policy::rules::parsed;

    #[test]
    fn a_search_and_a_survey_show_no_text_of_a_file_that_is_denied() {
        let policy = parsed(r#"deny = ["Read(**/.env)", "Read(AGENTS.md)", "Read(.gantry/**)"]"#);
        let policy = policy.expect("a policy");
        let line = |path: &str, line| GrepMatch {
            path: path.to_owned(),
            line,
            text: "KEY=1".to_owned(),
        };
        let mut grepped = Outcome::Grepped(Grepped {
            matches: vec![line("a/.env", 1), line("a/.env", 2), line("b", 1)],
            more: false,
            unread_rules: 0,
            skipped: Vec::new(),
            more_skipped: 0,
        });
        policy.hide(&mut grepped);
        let Outcome::Grepped(left) = grepped else {
            panic!("another outcome");
        };
        assert_eq!((left.matches, left.more_skipped), (vec![line("b", 1)], 1));

        let instructions = |path: &str| Instructions {
            path: path.to_owned(),
            text: "do".to_owned(),
            bytes: 2,
            cut: false,
        };
        let mut surveyed = Outcome::Surveyed(Surveyed {
            system: String::new(),
            folder: String::new(),
            branch: None,
            instructions: vec![instructions("AGENTS.md"), instructions("a/AGENTS.md")],
            unread: Vec::new(),
            project: Some(Box::new(ProjectFile {
                path: ".gantry/permissions.toml".to_owned(),
                text: String::new(),
            })),
            extensions: vec![
                instructions(".gantry/hooks.json"),
                instructions(".mcp.json"),
            ],
        });
        policy.hide(&mut surveyed);
        let Outcome::Surveyed(left) = surveyed else {
            panic!("another outcome");
        };
        assert_eq!(left.instructions, [instructions("a/AGENTS.md")]);
        assert_eq!(left.extensions, [instructions(".mcp.json")]);
        assert_eq!(left.project, None);
        let unread: Vec<_> = left.unread.iter().map(|one| &*one.path).collect();
        assert_eq!(
            unread,
            [
                "AGENTS.md",
                ".gantry/hooks.json",
                ".gantry/permissions.toml"
            ]
        );
    }
}
