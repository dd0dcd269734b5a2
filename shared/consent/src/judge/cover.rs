//! How rules hold for a deed: broadly where they restrict, strictly where they allow.

use super::view::View;
use crate::{
    Deed,
    command::{Script, Segment, word::Word},
    risk::{Assessment, Reason, paths, programs::writes_its_files},
    rule::{
        Rule, Subject,
        pattern::{Fit, Pattern},
        place::Place,
    },
};
use shared_types::Risk;

/// How a rule that asks or denies fits a deed. Rules about files and hosts also fit the commands
/// whose words name them.
pub(super) fn fit(rule: &Rule, view: &View) -> Fit {
    let yes = |holds: bool| if holds { Fit::Yes } else { Fit::No };
    match (&rule.subject, &view.deed) {
        (Subject::Shell(Pattern::Exact(text)), deed) if deed.command().as_ref() == Some(text) => {
            Fit::Yes
        }
        (Subject::Read(place), Deed::Read(path)) => yes(place.holds(path)),
        (Subject::Write(place), Deed::Write(path)) => yes(place.holds(path)),
        (Subject::Fetch(None), Deed::Fetch(_)) => Fit::Yes,
        (Subject::Fetch(Some(host)), Deed::Fetch(url)) => host.holds(url).map_or(Fit::Maybe, yes),
        (Subject::Tool(name), Deed::Tool(tool)) => {
            yes(name.as_ref().is_none_or(|name| name == tool))
        }
        (subject, _) => {
            let segments = view
                .commands
                .iter()
                .flat_map(|(script, _)| &script.segments);
            segments
                .map(|segment| of_segment(subject, segment))
                .max()
                .unwrap_or(Fit::No)
        }
    }
}

fn of_segment(subject: &Subject, segment: &Segment) -> Fit {
    let yes = |holds: bool| if holds { Fit::Yes } else { Fit::No };
    match subject {
        Subject::Shell(pattern) => pattern.fits(segment),
        Subject::Read(place) if !place.pattern().is_empty() => {
            let files = segment.redirects.iter().map(|redirect| &redirect.target);
            yes(segment
                .arguments()
                .iter()
                .chain(files)
                .any(|word| names(place, word)))
        }
        Subject::Write(place) if !place.pattern().is_empty() => {
            let written = segment.redirects.iter().filter(|redirect| redirect.writes);
            let program = segment.program().unwrap_or_default();
            let changed = writes_its_files(&program)
                && segment.arguments().iter().any(|word| names(place, word));
            yes(changed
                || written
                    .map(|redirect| &redirect.target)
                    .any(|word| names(place, word)))
        }
        Subject::Fetch(Some(host)) => {
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

/// True if a word names a path of the place: as it stands, or after `=` or `@`.
fn names(place: &Place, word: &Word) -> bool {
    word.literal().is_some_and(|text| {
        let after = |sign| text.split_once(sign).map_or("", |(_, rest)| rest);
        [text, after('='), after('@')]
            .iter()
            .any(|path| !path.is_empty() && place.holds(path))
    })
}

/// The rule by which a set of allow rules covers the whole deed: the first that covers a part of it.
pub(super) fn covering<R>(
    rules: impl Iterator<Item = R> + Clone,
    rule: impl Fn(&R) -> &Rule,
    view: &View,
) -> Option<R> {
    if let Some((script, assessment)) = &view.commands {
        return commands(rules, rule, view, script, assessment);
    }
    let mut rules = rules;
    rules.find(|ruled| match (&rule(ruled).subject, &view.deed) {
        (Subject::Read(place), Deed::Read(path)) => place.holds(path),
        (Subject::Write(place), Deed::Write(path)) => {
            // A wide pattern does not name the few files that others run or trust.
            place.holds(path) && (view.risk < Risk::High || paths::is_protected(place.pattern()))
        }
        (Subject::Fetch(None), Deed::Fetch(_)) => true,
        (Subject::Fetch(Some(host)), Deed::Fetch(url)) => host.holds(url) == Some(true),
        (Subject::Tool(name), Deed::Tool(tool)) => name.as_ref().is_none_or(|name| name == tool),
        _ => false,
    })
}

fn commands<R>(
    rules: impl Iterator<Item = R> + Clone,
    rule: impl Fn(&R) -> &Rule,
    view: &View,
    script: &Script,
    assessment: &Assessment,
) -> Option<R> {
    let text = view.deed.command();
    let exact = rules.clone().find(|ruled| {
        matches!(&rule(ruled).subject, Subject::Shell(Pattern::Exact(exact)) if Some(exact) == text.as_ref())
    });
    if exact.is_some() || !assessment.whole.is_empty() {
        return exact;
    }
    let patterns: Vec<_> = rules
        .clone()
        .enumerate()
        .filter_map(|(number, ruled)| match &rule(&ruled).subject {
            Subject::Shell(pattern) => Some((number, pattern.clone())),
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
