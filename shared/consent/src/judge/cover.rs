//! The fit of rules to a deed: broad where they restrict, strict where they allow.

use globset::Glob;

use super::view::{AssessedDeed, Folders};
use crate::{
    Deed,
    command::{Script, Segment, word::Word},
    risk::{Assessment, Reason, paths, programs::writes_its_files},
    rule::{
        Rule, RuleSubject, SERVER_PREFIX, holds_for_server,
        pattern::{Fit, Pattern},
        place::PathPattern,
    },
};
use shared_types::Risk;

/// The fit of a rule that asks or denies to a deed. Rules about files and hosts also fit the commands
/// whose words name them.
pub(super) fn fit(rule: &Rule, view: &AssessedDeed) -> Fit {
    let yes = |holds: bool| if holds { Fit::Yes } else { Fit::No };
    match (&rule.subject, &view.deed) {
        (RuleSubject::Shell(Pattern::Exact(text)), deed)
            if deed.command().as_ref() == Some(text) =>
        {
            Fit::Yes
        }
        (RuleSubject::Read(place), Deed::Read(path)) => yes(place.holds(path)),
        (RuleSubject::Read(place), Deed::Search(path)) => match place.holds(path) {
            true => Fit::Yes,
            // What lies below may be what the rule names.
            false => Fit::Maybe,
        },
        (RuleSubject::Write(place), Deed::Write(path)) => yes(place.holds(path)),
        (RuleSubject::Fetch(None), Deed::Fetch(_)) => Fit::Yes,
        (RuleSubject::Fetch(Some(host)), Deed::Fetch(url)) => {
            host.holds(url).map_or(Fit::Maybe, yes)
        }
        (RuleSubject::Tool(name), Deed::Tool(tool)) => {
            yes(name.as_ref().is_none_or(|name| name == tool))
        }
        (RuleSubject::Server(name), Deed::Tool(tool)) => yes(holds_for_server(name, tool)),
        (subject, _) => {
            let segments = view
                .commands
                .iter()
                .flat_map(|(script, _)| &script.segments);
            segments
                .map(|segment| of_segment(subject, segment, &view.folders))
                .max()
                .unwrap_or(Fit::No)
        }
    }
}

fn of_segment(subject: &RuleSubject, segment: &Segment, folders: &Folders) -> Fit {
    let yes = |holds: bool| if holds { Fit::Yes } else { Fit::No };
    match subject {
        RuleSubject::Shell(pattern) => pattern.fits(segment),
        RuleSubject::Read(place) if !place.pattern().is_empty() => {
            let files = segment.redirects.iter().map(|redirect| &redirect.target);
            let words = segment.arguments().iter().chain(files);
            words
                .map(|word| names(place, word, folders))
                .max()
                .unwrap_or(Fit::No)
        }
        RuleSubject::Write(place) if !place.pattern().is_empty() => {
            let written = segment.redirects.iter().filter(|redirect| redirect.writes);
            let program = segment.program().unwrap_or_default();
            let changed = match writes_its_files(&program) {
                true => segment.arguments(),
                false => &[],
            };
            let words = changed
                .iter()
                .chain(written.map(|redirect| &redirect.target));
            words
                .map(|word| names(place, word, folders))
                .max()
                .unwrap_or(Fit::No)
        }
        RuleSubject::Fetch(Some(host)) => {
            let mut urls = segment
                .words
                .iter()
                .filter_map(Word::literal)
                .filter(|word| word.contains("://"));
            yes(urls.any(|url| host.holds(url) == Some(true)))
        }
        _ => Fit::No,
    }
}

/// Tells if a word names a path of the place: as it stands, after `=` or `@`, or in a folder of the script. Of a word
/// that only the run completes it may.
fn names(place: &PathPattern, word: &Word, folders: &Folders) -> Fit {
    let Some(text) = word.literal() else {
        let has_holes = word.holes().next().is_some();
        return match has_holes || folders.open || may_become(&word.shown(), place) {
            true => Fit::Maybe,
            false => Fit::No,
        };
    };
    let after = |sign| text.split_once(sign).map_or("", |(_, rest)| rest);
    let paths = [text, after('='), after('@')]
        .into_iter()
        .filter(|path| !path.is_empty());
    let holds = paths.clone().any(|path| {
        let inside =
            |folder: &String| place.holds(&paths::tidy_folder(&format!("{folder}/{path}")));
        place.holds(path) || folders.known.iter().any(inside)
    });
    if holds {
        return Fit::Yes;
    }
    match folders.open {
        true => Fit::Maybe,
        false => Fit::No,
    }
}

/// True if the shell may make a path of the place of this pattern of its own (`.en?`).
fn may_become(path: &str, place: &PathPattern) -> bool {
    const WILD: [char; 3] = ['*', '?', '['];
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let (of_word, of_place) = (name(path), name(place.pattern()));
    if of_place.contains(WILD) {
        return true;
    }
    Glob::new(&of_word).is_ok_and(|glob| glob.compile_matcher().is_match(&of_place))
}

/// The rule by which a set of allow rules covers the whole deed: the first that covers a part of it.
pub(super) fn covering<R>(
    rules: impl Iterator<Item = R> + Clone,
    rule: impl Fn(&R) -> &Rule,
    view: &AssessedDeed,
) -> Option<R> {
    if let Some((script, assessment)) = &view.commands {
        return commands(rules, rule, view, script, assessment);
    }
    let mut rules = rules;
    rules.find(|ruled| match (&rule(ruled).subject, &view.deed) {
        (RuleSubject::Read(place), Deed::Read(path) | Deed::Search(path)) => place.holds(path),
        (RuleSubject::Write(place), Deed::Write(path)) => {
            // A wide pattern does not name the few files that others run or trust.
            place.holds(path) && (view.risk < Risk::High || paths::is_protected(place.pattern()))
        }
        (RuleSubject::Fetch(None), Deed::Fetch(_)) => true,
        (RuleSubject::Fetch(Some(host)), Deed::Fetch(url)) => host.holds(url) == Some(true),
        (RuleSubject::Tool(name), Deed::Tool(tool)) => {
            // Who allows Gantry's own tools has not thought of servers of strangers.
            let is_own = !tool.starts_with(SERVER_PREFIX);
            name.as_ref().map_or(is_own, |name| name == tool)
        }
        (RuleSubject::Server(name), Deed::Tool(tool)) => holds_for_server(name, tool),
        _ => false,
    })
}

fn commands<R>(
    rules: impl Iterator<Item = R> + Clone,
    rule: impl Fn(&R) -> &Rule,
    view: &AssessedDeed,
    script: &Script,
    assessment: &Assessment,
) -> Option<R> {
    let text = view.deed.command();
    let exact = rules.clone().find(|ruled| {
        matches!(&rule(ruled).subject, RuleSubject::Shell(Pattern::Exact(exact)) if Some(exact) == text.as_ref())
    });
    if exact.is_some() || !assessment.whole.is_empty() {
        return exact;
    }
    let patterns: Vec<_> = rules
        .clone()
        .enumerate()
        .filter_map(|(number, ruled)| match &rule(&ruled).subject {
            RuleSubject::Shell(pattern) => Some((number, pattern.clone())),
            _ => None,
        })
        .collect();
    let mut used = None;
    for (at, reasons) in assessment.segments.iter().enumerate() {
        if reasons.is_empty() {
            continue;
        }
        if reasons.iter().any(refused) {
            return None;
        }
        used = used.or(Some(covered_by(at, &patterns, script, assessment)?));
    }
    rules.into_iter().nth(used?)
}

/// The number of the rule that covers a segment: one about its own words, or about those of what starts
/// it. A rule about a starter that only passes a command on (`find`, `timeout`) does not speak of that
/// command; a rule about one with a risk of its own (`sudo`, `npx`, `docker run`) does.
fn covered_by(
    at: usize,
    patterns: &[(usize, Pattern)],
    script: &Script,
    assessment: &Assessment,
) -> Option<usize> {
    let starters = std::iter::successors(Some(at), |at| script.segments[*at].parent);
    starters
        .filter(|at| !assessment.segments[*at].is_empty())
        .find_map(|at| {
            patterns
                .iter()
                .find(|(_, pattern)| pattern.covers(&script.segments[at]))
        })
        .map(|(number, _)| *number)
}

/// True if no rule for a program accepts the reason.
fn refused(reason: &Reason) -> bool {
    reason.doubt || (!reason.own && reason.risk == Risk::High)
}
