//! Removes ephemeral runners that stay away: machines of a fleet are killed more often than asked
//! to leave, and what they left would stay in every list for ever.
//!
//! A server that was down heard nobody. So the first look comes only after a while, in which every
//! runner that lives has come back (a runner tries again at least every 30 s).

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{AppError, Runners};

/// How often it is looked for such runners, at most, and how long after the start.
const EVERY: Duration = Duration::from_secs(60 * 60);

/// See the module.
pub(crate) struct Sweep {
    pub(crate) runners: Runners,
    /// After this long without a word an ephemeral runner is removed.
    pub(crate) silence: Duration,
}

impl Sweep {
    /// Sweeps until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let every = self.silence.min(EVERY);
        loop {
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                () = stop.cancelled() => return,
            }
            if let Err(error) = self.once().await {
                tracing::warn!(%error, "ephemeral runners that stay away cannot be removed; trying again");
            }
        }
    }

    /// Also what waits for their operations hears that they are gone.
    async fn once(&self) -> Result<(), AppError> {
        for runner in self.runners.remove_silent(self.silence).await? {
            tracing::info!(runner.id = %runner, "an ephemeral runner stayed away and was removed");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use server_store::NewRunner;
    use shared_types::{Clock as _, OsEntropy, RunnerId};

    use super::*;
    use crate::{JoinTerms, testing::Fixture};

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
            let clock = shared_types::SystemClock::new();
            let runner = NewRunner {
                id: RunnerId::generate(&clock, &OsEntropy),
                name: name.to_owned(),
                labels: Default::default(),
                public_key: [7; 32],
                hostname: name.to_owned(),
                version: "1".to_owned(),
            };
            let token = token.expect("a token").token.hash();
            let row = app.store.enrol(&token, &runner, clock.now()).await;
            enrolled.push(row.expect("the token is good").id);
        }
        let sweep = Sweep {
            runners: app.runners.clone(),
            silence: Duration::from_millis(1),
        };
        let sweeping = tokio::spawn(sweep.run(fixture.stop.clone()));
        let gone = async || {
            let runners = app.runners.list(ctx).await.expect("a list");
            runners.iter().all(|runner| runner.id != enrolled[0])
        };
        while !gone().await {
            tokio::task::yield_now().await;
        }
        let left = app.runners.list(ctx).await.expect("a list");
        assert_eq!((left.len(), left[0].id), (1, enrolled[1]));
        fixture.stop.cancel();
        sweeping.await.expect("it ends with the server");
    }
}
