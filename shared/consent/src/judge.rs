//! The decision about a deed.
//!
//! 1. A rule that denies and fits refuses. In plan mode all that does not only read is refused. Then a rule that asks
//!    and fits asks.
//! 2. Allow rules that cover the whole deed allow it. They do not count in plan mode or under a
//!    ceiling below auto: a person cannot lift such a promise by a rule.
//! 3. Else the mode decides.
//! 4. Where a rule only *may* fit, or a command cannot be read for certain while a rule denies
//!    commands, a person is asked instead of an allowance.

mod cover;
mod suggest;
mod view;

use shared_types::{Isolation, Mode, Risk, isolation::Property};

use crate::{
    Deed,
    rule::{Decision, Rule, RuleSubject, Ruled, pattern::Fit},
};
use view::AssessedDeed;

/// The circumstances of a judgement: all that it depends on besides the deed.
#[derive(Debug)]
pub struct Terms<'a, T> {
    /// The mode that a person chose.
    pub mode: Mode,
    /// The freest mode that those above the person permit.
    pub ceiling: Option<Mode>,
    /// The properties that are proved for the sandbox.
    pub isolation: &'a Isolation,
    /// The folder in which a command starts, relative to the sandbox's root or absolute; empty for the root.
    pub folder: &'a str,
    /// Every rule of every layer; their order does not matter.
    pub rules: &'a [Ruled<T>],
}

/// A judgement, with what a person needs to know about it.
#[derive(Debug, Clone)]
pub struct Verdict<'a, T> {
    /// The answer.
    pub decision: Decision,
    /// The harm that the deed may do.
    pub risk: Risk,
    /// The cause of the answer: one line for people.
    pub why: String,
    /// The reasons for the risk, the gravest first; each completes "it …". Empty if the risk is low.
    pub reasons: Vec<String>,
    /// The rule that gave the answer; none if the mode did.
    pub by: Option<&'a Ruled<T>>,
    /// The rule that would allow this the next time; none if no rule is narrow enough.
    pub suggestion: Option<Rule>,
}

/// The most reasons in a verdict.
const MAX_REASONS: usize = 8;

/// Judges a deed. A pure function: it reads no file, resolves no name and asks no person.
pub fn judge<'a, T>(deed: &Deed, terms: &Terms<'a, T>) -> Verdict<'a, T> {
    let view = AssessedDeed::of(deed, terms.folder);
    let (decision, why, by) = decide(&view, terms);
    let asked_by_rule = by.is_some_and(|ruled| ruled.decision != Decision::Allow);
    let suggestion = (decision == Decision::Ask && !asked_by_rule)
        .then(|| suggest::rule(&view))
        .flatten();
    Verdict {
        decision,
        risk: view.risk,
        why,
        reasons: view.reasons.iter().take(MAX_REASONS).cloned().collect(),
        by,
        suggestion,
    }
}

type ReasonedDecision<'a, T> = (Decision, String, Option<&'a Ruled<T>>);

fn decide<'a, T>(view: &AssessedDeed, terms: &Terms<'a, T>) -> ReasonedDecision<'a, T> {
    let restricting = |decision| {
        let rules = terms
            .rules
            .iter()
            .filter(move |ruled| ruled.decision == decision);
        let fits = rules.map(|ruled| (cover::fit(&ruled.rule, view), ruled));
        fits.max_by_key(|(fit, _)| *fit)
            .filter(|(fit, _)| *fit != Fit::No)
    };
    let (deny, ask) = (restricting(Decision::Deny), restricting(Decision::Ask));
    if let Some((Fit::Yes, ruled)) = deny {
        return (
            Decision::Deny,
            format!("the rule {} denies it", ruled.rule),
            Some(ruled),
        );
    }
    // No rule and no person lifts the promise of plan mode.
    if mode(terms) == Mode::Plan && view.risk > Risk::Low {
        return of_mode(view, terms);
    }
    if let Some((Fit::Yes, ruled)) = ask {
        return (
            Decision::Ask,
            format!("the rule {} asks about it", ruled.rule),
            Some(ruled),
        );
    }
    let (decision, why, by) = allowed(view, terms).unwrap_or_else(|| of_mode(view, terms));
    if decision != Decision::Allow {
        return (decision, why, by);
    }
    if let Some((_, ruled)) = deny.or(ask) {
        let why = format!(
            "the rule {} may hold for it; only the run decides",
            ruled.rule
        );
        return (Decision::Ask, why, Some(ruled));
    }
    let denies = |ruled: &&Ruled<T>| {
        ruled.decision == Decision::Deny && matches!(ruled.rule.subject, RuleSubject::Shell(_))
    };
    match terms.rules.iter().find(denies) {
        Some(ruled) if view.doubtful => {
            let why = format!(
                "it could be what the rule {} denies: it {}",
                ruled.rule,
                view.doubt()
            );
            (Decision::Ask, why, Some(ruled))
        }
        _ => (decision, why, by),
    }
}

/// The answer of the allow rules, if they cover the deed.
fn allowed<'a, T>(view: &AssessedDeed, terms: &Terms<'a, T>) -> Option<ReasonedDecision<'a, T>> {
    let permitted = terms.ceiling.is_none_or(|ceiling| ceiling >= Mode::Auto);
    if !permitted || mode(terms) == Mode::Plan {
        return None;
    }
    let rules = terms
        .rules
        .iter()
        .filter(|ruled| ruled.decision == Decision::Allow);
    let by = cover::covering(rules, |ruled| &ruled.rule, view)?;
    Some((
        Decision::Allow,
        format!("the rule {} allows it", by.rule),
        Some(by),
    ))
}

/// The mode that counts.
fn mode<T>(terms: &Terms<'_, T>) -> Mode {
    terms
        .ceiling
        .map_or(terms.mode, |ceiling| ceiling.min(terms.mode))
}

/// The answer of the mode.
fn of_mode<'a, T>(view: &AssessedDeed, terms: &Terms<'a, T>) -> ReasonedDecision<'a, T> {
    let reason = view.reasons.first().map_or("", String::as_str);
    let (decision, why) = match mode(terms) {
        _ if view.risk == Risk::Low => (Decision::Allow, "it only reads".to_owned()),
        Mode::Plan => (
            Decision::Deny,
            format!("plan mode only reads, and this {reason}"),
        ),
        Mode::Ask => (
            Decision::Ask,
            format!("ask mode asks before each change: it {reason}"),
        ),
        Mode::Auto => in_auto(view, terms, reason),
        Mode::Full => (Decision::Allow, "full mode does not ask".to_owned()),
    };
    (decision, why, None)
}

fn in_auto<T>(view: &AssessedDeed, terms: &Terms<'_, T>, reason: &str) -> (Decision, String) {
    let kept = Isolation::of([
        Property::FileWrites,
        Property::Credential,
        Property::Processes,
    ]);
    let apart = terms.isolation.satisfies(&kept);
    match view.deed {
        Deed::Write(_) | Deed::Shell(_) | Deed::Argv(_) if view.risk == Risk::High => {
            (Decision::Ask, format!("auto mode asks: it {reason}"))
        }
        Deed::Write(_) => (
            Decision::Allow,
            "file tools stay in the workspace".to_owned(),
        ),
        Deed::Shell(_) | Deed::Argv(_) if apart => (
            Decision::Allow,
            "the sandbox protects against its effects".to_owned(),
        ),
        Deed::Shell(_) | Deed::Argv(_) => {
            let missing = terms.isolation.missing(&kept);
            let why =
                format!("auto mode asks: it {reason}, and the sandbox does not prove {missing}");
            (Decision::Ask, why)
        }
        _ => (Decision::Ask, format!("auto mode asks: it {reason}")),
    }
}
