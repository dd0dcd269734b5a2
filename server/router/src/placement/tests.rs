use proptest::prelude::*;
use shared_types::{JournalId, RunnerId, SandboxId, Timestamp, isolation::Property};

use super::*;
use server_records::FleetSandbox;

/// Few ids, so that choices meet runners, and twice the same runner is generated as well.
fn runner_id() -> impl Strategy<Value = RunnerId> {
    (1..6u128).prop_map(RunnerId::from_u128)
}

fn isolation() -> impl Strategy<Value = Isolation> {
    let property = prop::sample::select(vec![
        Property::FileWrites,
        Property::Network,
        Property::KillTree,
    ]);
    prop::collection::vec(property, 0..3).prop_map(Isolation::of)
}

fn state() -> impl Strategy<Value = RunnerState> {
    prop_oneof![
        Just(RunnerState::Online),
        prop::option::of(2_900_000_000..3_050_000_000i64).prop_map(|since| RunnerState::Offline {
            since: since.map(Timestamp::from_micros)
        }),
        Just(RunnerState::Revoked),
    ]
}

fn runner() -> impl Strategy<Value = FleetRunner> {
    let sandboxes = prop::collection::vec((isolation(), any::<bool>()), 0..3);
    let locked = prop::bool::weighted(0.2);
    let drained = prop::bool::weighted(0.2);
    let parts = (
        runner_id(),
        state(),
        [locked, drained],
        sandboxes,
        any::<[bool; 2]>(),
    );
    parts.prop_map(
        |(id, state, [locked, drained], sandboxes, [linked, believed])| FleetRunner {
            pool: false,
            id,
            name: format!("runner-{}", id.as_u128()),
            state,
            locked,
            drained_by: (drained && state != RunnerState::Revoked).then(|| "ana".to_owned()),
            sandboxes: WORKSPACES
                .into_iter()
                .zip(sandboxes)
                .map(|(name, (isolation, usable))| FleetSandbox {
                    id: SandboxId::derive(id, name),
                    name: name.to_owned(),
                    isolation,
                    problem: (!usable).then(|| "its folder is gone".to_owned()),
                    has_sudo: false,
                    epoch: shared_types::Epoch(0),
                })
                .collect(),
            believed,
            incarnation: linked.then(|| Incarnation {
                journal: JournalId::from_u128(id.as_u128()),
                boot: "boot".to_owned(),
            }),
        },
    )
}

fn fleet() -> impl Strategy<Value = FleetSnapshot> {
    let runners = prop::collection::vec(runner(), 0..6).prop_map(|mut runners| {
        runners.sort_by_key(|runner| runner.id);
        runners.dedup_by_key(|runner| runner.id);
        runners
    });
    (choice(), isolation(), runners).prop_map(|(choice, demanded, runners)| FleetSnapshot {
        returns_until: None,
        lacks_sandbox: None,
        is_callers: false,
        choice,
        demanded,
        runners,
    })
}

/// What runners call their workspaces, the first one first.
const WORKSPACES: [&str; 2] = ["workspace", "api"];

fn choice() -> impl Strategy<Value = Choice> {
    let workspace = prop::option::of(prop::sample::select(&WORKSPACES[..]));
    (0..4, runner_id(), workspace).prop_map(|(by, runner, workspace)| {
        let name = format!("runner-{}", runner.as_u128());
        let workspace = workspace.map(str::to_owned);
        match by {
            0 => Choice::None,
            1 => Choice::User {
                runner,
                name,
                workspace,
            },
            2 => Choice::Tenant {
                runner,
                name,
                workspace,
            },
            _ => Choice::Session {
                runner,
                name,
                workspace,
            },
        }
    })
}

/// The workspace that is meant, where the runner has it.
fn meant<'a>(choice: &Choice, chosen: &'a FleetRunner) -> Option<&'a FleetSandbox> {
    match choice.workspace() {
        None => chosen.sandboxes.first(),
        Some(name) => chosen.sandboxes.iter().find(|one| one.name == name),
    }
}

/// Within the range of what the runners were last heard of.
const NOW: Timestamp = Timestamp::from_micros(3_000_000_000);

const RECENT: Recent = Recent {
    now: NOW,
    lease: Duration::from_secs(45),
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_result_is_the_chosen_runner_or_an_error_that_says_why(fleet in fleet()) {
        let choice = fleet.choice.runner().map(|(id, _)| id);
        let chosen = fleet.runners.iter().find(|runner| Some(runner.id) == choice);
        match place(&fleet, RECENT) {
            Ok(placement) => {
                let chosen = chosen.expect("nothing is placed without a choice");
                prop_assert_eq!(chosen.state, RunnerState::Online);
                prop_assert!(!chosen.locked);
                prop_assert_eq!(&chosen.drained_by, &None);
                prop_assert_eq!(placement.place.runner, chosen.id);
                prop_assert_eq!(&placement.place.runner_name, &chosen.name);
                let missing = placement.place.isolation.missing(&fleet.demanded);
                prop_assert_eq!(missing, Isolation::none());
                let sandbox = meant(&fleet.choice, chosen).expect("a sandbox");
                prop_assert_eq!(&sandbox.problem, &None);
                prop_assert_eq!(placement.place.sandbox, sandbox.id);
                let none = Isolation::none();
                let proved = if chosen.believed { &sandbox.isolation } else { &none };
                prop_assert_eq!(&placement.place.isolation, proved);
                prop_assert_eq!(&Some(placement.incarnation), &chosen.incarnation);
            }
            Err(NotPlaced::Refused(refusal)) => {
                let since = chosen.and_then(|runner| match runner.state {
                    RunnerState::Offline { since } if takes_work(runner) => since,
                    _ => None,
                });
                prop_assert!(since.is_none_or(|since| NOW.since(since) >= RECENT.lease));
                says_why(&fleet, chosen, &refusal)?;
            }
            Err(NotPlaced::Away(away)) => {
                prop_assert_eq!(chosen.map(|runner| runner.id), Some(away.runner));
                prop_assert!(chosen.is_some_and(takes_work));
                let since = chosen.and_then(|runner| match runner.state {
                    RunnerState::Offline { since } => since,
                    _ => None,
                });
                prop_assert!(since.is_some_and(|since| NOW.since(since) < RECENT.lease));
                says_why(&fleet, chosen, &away.refusal)?;
            }
        }
    }
}

fn takes_work(runner: &FleetRunner) -> bool {
    !runner.locked && runner.drained_by.is_none()
}

fn says_why(
    fleet: &FleetSnapshot,
    chosen: Option<&FleetRunner>,
    refusal: &Refusal,
) -> Result<(), TestCaseError> {
    let says = |text: &str| refusal.message.contains(text);
    let is_pinned = matches!(fleet.choice, Choice::Session { .. });
    prop_assert_eq!(says("this session is pinned"), is_pinned);
    let Some(chosen) = chosen else {
        prop_assert_eq!(refusal.code, RefusalCode::Unavailable);
        let helps =
            says("gantry runners use") || says("/runner NAME") || says("gantry runners add");
        prop_assert!(helps);
        return Ok(());
    };
    prop_assert!(says(&chosen.name));
    match chosen.state {
        RunnerState::Revoked => prop_assert!(says("was removed")),
        _ if chosen.locked => prop_assert!(says("its folder was copied")),
        _ if chosen.drained_by.is_some() => {
            let remedy = ["gantry runners undrain ", &chosen.name].concat();
            prop_assert!(says("ana lets it drain") && says(&remedy));
        }
        RunnerState::Offline { since: Some(since) } => {
            let text = format!("{since:.0}");
            prop_assert!(says(&text));
        }
        RunnerState::Offline { since: None } => prop_assert!(says("never")),
        RunnerState::Online => {
            if chosen.sandboxes.is_empty() || chosen.incarnation.is_none() {
                prop_assert!(says("no workspace"));
                return Ok(());
            }
            let Some(sandbox) = meant(&fleet.choice, chosen) else {
                let named = fleet.choice.workspace().expect("the first one is there");
                let gone = format!("no workspace {named:?} any more");
                prop_assert!(says(&gone));
                return Ok(());
            };
            if sandbox.problem.is_some() {
                prop_assert!(says("its folder is gone") && says(&sandbox.name));
                return Ok(());
            }
            let missing = sandbox.isolation.missing(&fleet.demanded);
            prop_assert_ne!(&fleet.demanded, &Isolation::none());
            prop_assert_eq!(refusal.code, RefusalCode::ForbiddenByRunnerPolicy);
            if missing == Isolation::none() {
                prop_assert!(!chosen.believed);
                let remedy = ["gantry runners trust ", &chosen.name].concat();
                prop_assert!(says(&remedy));
            } else {
                prop_assert!(says(&missing.to_string()));
            }
            return Ok(());
        }
    }
    prop_assert_eq!(refusal.code, RefusalCode::Unavailable);
    Ok(())
}
