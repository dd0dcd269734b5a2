use std::{collections::HashSet, sync::Arc, time::Duration};

use server_router::{Reaper, SilenceLimits};
use server_store::{NewRunner, Outputs, Ports};
use shared_types::{Clock as _, Digest, OsEntropy, RunnerId, SystemClock, clock::ManualClock};

use crate::{JoinTerms, testing::Fixture};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::test]
async fn an_ephemeral_runner_that_stays_away_is_removed_and_any_other_one_stays() {
    let fixture = Fixture::practice().await;
    let (app, ctx) = (&fixture.app, &fixture.ctx);
    let mut enrolled = Vec::new();
    for (name, ephemeral) in [("fleet-7", true), ("laptop", false)] {
        let terms = JoinTerms {
            ephemeral,
            ..JoinTerms::default()
        };
        let token = app.runners.create_join_token(ctx, terms).await;
        let clock = SystemClock::new();
        let runner = NewRunner {
            id: RunnerId::generate(&clock, &OsEntropy),
            name: name.to_owned(),
            labels: Default::default(),
            public_key: *Digest::of(name.as_bytes()).as_bytes(),
            hostname: name.to_owned(),
            version: "1".to_owned(),
        };
        let token = token.expect("a token").token.hash();
        let row = app.store.enrol(&token, &runner, clock.now()).await;
        enrolled.push(row.expect("the token is good").id);
    }
    let clock = Arc::new(ManualClock::at(SystemClock::new().now()));
    let limits = SilenceLimits {
        operations_lost_after: 100 * DAY,
        ephemeral_removed_after: DAY,
    };
    let ports = Ports {
        store: app.store.clone(),
        outputs: Outputs::start(&fixture.folder().join("other")).expect("a folder"),
        clock: clock.clone(),
        forbids_sudo: false,
    };
    let (rows, links) = (ports.silent_runners(app.replica), app.links.clone());
    let mut reaper = Reaper::from_now(rows, links, clock.clone(), limits);
    let mut left_after = async |by| {
        clock.advance(by);
        for _ in 0..2 {
            reaper.look().await.expect("the store answers");
        }
        let left = app.runners.list(ctx, "", 10).await.expect("a list").0;
        left.into_iter()
            .map(|runner| runner.id)
            .collect::<HashSet<_>>()
    };
    let all: HashSet<_> = enrolled.iter().copied().collect();
    assert_eq!(left_after(DAY).await, all, "nobody had looked before");
    clock.set_wall(30 * DAY.as_micros() as i64);
    assert_eq!(left_after(DAY / 2).await, all);
    assert_eq!(left_after(DAY / 2).await, HashSet::from([enrolled[1]]));
}
