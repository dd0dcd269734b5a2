use proptest::prelude::*;
use shared_types::{JournalId, RunnerId, SandboxId, Timestamp, isolation::Property};

use super::*;

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
    let sandbox = prop::option::of(isolation());
    let locked = prop::bool::weighted(0.2);
    let parts = (runner_id(), state(), locked, sandbox, any::<[bool; 2]>());
    parts.prop_map(
        |(id, state, locked, isolation, [linked, believed])| FleetRunner {
            id,
            name: format!("runner-{}", id.as_u128()),
            state,
            locked,
            sandbox: isolation.map(|isolation| (SandboxId::derive(id, "workspace"), isolation)),
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
        choice,
        demanded,
        runners,
    })
}

fn choice() -> impl Strategy<Value = Choice> {
    let named = |runner: RunnerId| (runner, format!("runner-{}", runner.as_u128()));
    prop_oneof![
        Just(Choice::None),
        runner_id()
            .prop_map(named)
            .prop_map(|(runner, name)| Choice::User { runner, name }),
        runner_id()
            .prop_map(named)
            .prop_map(|(runner, name)| Choice::Tenant { runner, name }),
        runner_id()
            .prop_map(named)
            .prop_map(|(runner, name)| Choice::Session { runner, name }),
    ]
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
                prop_assert_eq!(placement.place.runner, chosen.id);
                prop_assert_eq!(&placement.place.runner_name, &chosen.name);
                let missing = placement.place.isolation.missing(&fleet.demanded);
                prop_assert_eq!(missing, Isolation::none());
                let (sandbox, reported) = chosen.sandbox.as_ref().expect("a sandbox");
                prop_assert_eq!(&placement.place.sandbox, sandbox);
                let none = Isolation::none();
                let proved = if chosen.believed { reported } else { &none };
                prop_assert_eq!(&placement.place.isolation, proved);
                prop_assert_eq!(&Some(placement.incarnation), &chosen.incarnation);
            }
            Err(NotPlaced::Refused(refusal)) => {
                let since = chosen.and_then(|runner| match runner.state {
                    RunnerState::Offline { since } if !runner.locked => since,
                    _ => None,
                });
                prop_assert!(since.is_none_or(|since| NOW.since(since) >= RECENT.lease));
                says_why(&fleet, chosen, &refusal)?;
            }
            Err(NotPlaced::Away(away)) => {
                prop_assert_eq!(chosen.map(|runner| runner.id), Some(away.runner));
                prop_assert!(chosen.is_some_and(|runner| !runner.locked));
                prop_assert!(NOW.since(away.since) < RECENT.lease);
                says_why(&fleet, chosen, &away.refusal)?;
            }
        }
    }
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
        let helps = says("gantry runners use") || says("/runner NAME") || says("enrol");
        prop_assert!(helps);
        return Ok(());
    };
    prop_assert!(says(&chosen.name));
    match chosen.state {
        RunnerState::Revoked => prop_assert!(says("was removed")),
        _ if chosen.locked => prop_assert!(says("its folder was copied")),
        RunnerState::Offline { since: Some(since) } => {
            let text = format!("{since:.0}");
            prop_assert!(says(&text));
        }
        RunnerState::Offline { since: None } => prop_assert!(says("never")),
        RunnerState::Online => {
            let Some((_, isolation)) = &chosen.sandbox else {
                prop_assert!(says("no workspace"));
                return Ok(());
            };
            if chosen.incarnation.is_none() {
                prop_assert!(says("no workspace"));
                return Ok(());
            }
            let missing = isolation.missing(&fleet.demanded);
            prop_assert_ne!(&fleet.demanded, &Isolation::none());
            prop_assert_eq!(refusal.code, RefusalCode::ForbiddenByRunnerPolicy);
            if missing == Isolation::none() {
                prop_assert!(!chosen.believed);
                prop_assert!(says("believed under [isolation]") && says(&chosen.id.to_string()));
            } else {
                prop_assert!(says(&missing.to_string()));
            }
            return Ok(());
        }
    }
    prop_assert_eq!(refusal.code, RefusalCode::Unavailable);
    Ok(())
}
