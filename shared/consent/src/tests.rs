//! The judgement as a whole: tables of commands, and properties that hold for every text.

mod cases;
mod deeds;
mod project;
mod properties;

use shared_types::{Isolation, Mode, isolation::Property};

use crate::{Decision, Deed, Ruled, Terms, Verdict, judge};

/// The isolation with which auto mode allows ordinary work.
fn sandboxed() -> Isolation {
    Isolation::of([
        Property::FileWrites,
        Property::Credential,
        Property::Processes,
    ])
}

fn ruled(decision: Decision, rule: &str) -> Ruled<()> {
    let rule = rule.parse().expect("a rule of the tests reads");
    Ruled {
        rule,
        decision,
        by: (),
    }
}

/// The verdict in a mode, with a sandbox and without a ceiling.
fn verdict<'a>(deed: &Deed, mode: Mode, rules: &'a [Ruled<()>]) -> Verdict<'a, ()> {
    let isolation = Box::leak(Box::new(sandboxed()));
    judge(
        deed,
        &Terms {
            mode,
            ceiling: None,
            isolation,
            folder: "",
            rules,
        },
    )
}
