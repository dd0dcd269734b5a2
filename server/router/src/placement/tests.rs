use proptest::prelude::*;
use shared_types::{Isolation, JournalId, RunnerId, SandboxId, Timestamp, isolation::Property};

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
        prop::option::of(0..i64::from(u32::MAX)).prop_map(|since| RunnerState::Offline {
            since: since.map(Timestamp::from_micros)
        }),
        Just(RunnerState::Revoked),
    ]
}

fn runner() -> impl Strategy<Value = FleetRunner> {
    let sandbox = prop::option::of(isolation());
    let locked = prop::bool::weighted(0.2);
    let parts = (runner_id(), state(), locked, sandbox, any::<bool>());
    parts.prop_map(|(id, state, locked, isolation, linked)| FleetRunner {
        id,
        name: format!("runner-{}", id.as_u128()),
        state,
        locked,
        sandbox: isolation.map(|isolation| (SandboxId::derive(id, "workspace"), isolation)),
        incarnation: linked.then(|| Incarnation {
            journal: JournalId::from_u128(id.as_u128()),
            boot: "boot".to_owned(),
        }),
    })
}

fn fleet() -> impl Strategy<Value = FleetSnapshot> {
    let runners = prop::collection::vec(runner(), 0..6).prop_map(|mut runners| {
        runners.sort_by_key(|runner| runner.id);
        runners.dedup_by_key(|runner| runner.id);
        runners
    });
    (prop::option::of(runner_id()), isolation(), runners).prop_map(|(choice, demanded, runners)| {
        FleetSnapshot {
            choice,
            demanded,
            runners,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_result_is_the_chosen_runner_or_an_error_that_says_why(fleet in fleet()) {
        let chosen = fleet.runners.iter().find(|runner| Some(runner.id) == fleet.choice);
        match place(&fleet) {
            Ok(placement) => {
                let chosen = chosen.expect("nothing is placed without a choice");
                prop_assert_eq!(chosen.state, RunnerState::Online);
                prop_assert!(!chosen.locked);
                prop_assert_eq!(placement.place.runner, chosen.id);
                prop_assert_eq!(&placement.place.runner_name, &chosen.name);
                let missing = placement.place.isolation.missing(&fleet.demanded);
                prop_assert_eq!(missing, Isolation::none());
                let sandbox = Some((placement.place.sandbox, placement.place.isolation));
                prop_assert_eq!(&sandbox, &chosen.sandbox);
                prop_assert_eq!(&Some(placement.incarnation), &chosen.incarnation);
            }
            Err(refusal) => says_why(&fleet, chosen, &refusal)?,
        }
    }
}

fn says_why(
    fleet: &FleetSnapshot,
    chosen: Option<&FleetRunner>,
    refusal: &Refusal,
) -> Result<(), TestCaseError> {
    let says = |text: &str| refusal.message.contains(text);
    let Some(chosen) = chosen else {
        prop_assert_eq!(refusal.code, RefusalCode::Unavailable);
        prop_assert!(says("gantry runners use") || fleet.runners.is_empty() || says("enrol"));
        return Ok(());
    };
    prop_assert!(says(&chosen.name));
    match chosen.state {
        RunnerState::Revoked => prop_assert!(says("revoked")),
        _ if chosen.locked => prop_assert!(says("its folder was copied")),
        RunnerState::Offline { since: Some(since) } => {
            let since = format!("{since:.0}");
            prop_assert!(says(&since));
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
            prop_assert_ne!(&missing, &Isolation::none());
            prop_assert_eq!(refusal.code, RefusalCode::ForbiddenByRunnerPolicy);
            prop_assert!(says(&missing.to_string()));
            return Ok(());
        }
    }
    prop_assert_eq!(refusal.code, RefusalCode::Unavailable);
    Ok(())
}
