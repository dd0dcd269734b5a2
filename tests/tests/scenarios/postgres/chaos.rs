//! Three servers on one database, and what fails around them: servers are killed, stopped and frozen, the ways of runners
//! are cut, and the database is away. The oracles are those of the contract: each command has its effect once and every
//! byte of its output, each turn has one end, and people see the same log without a gap at every server.
//!
//! `make test` has a short storm. `make soak` has longer ones, of other seeds: GANTRY_CHAOS_ROUNDS and GANTRY_CHAOS_SEED.

use std::time::Duration;

use shared_client::Followed;
use tests::{
    gantry::{Gantry, Runner, Setup, Talk},
    postgres::Postgres,
    proxy::Proxy,
    work::{Job, Work, finish},
};
use tokio::time::sleep;

/// Servers on the database.
const SERVERS: usize = 3;

/// What fails in one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// A server dies, and comes back at the end of the round.
    Killed,
    /// A server is asked to stop, and comes back.
    Stopped,
    /// A server is frozen for longer than its lease, and goes on with what it believes.
    Frozen,
    /// A runner's connection is cut, and leads to another server.
    Cut,
    /// The database dies, and comes back.
    DatabaseAway,
}

const FAILURES: [Failure; 5] = [
    Failure::Killed,
    Failure::Cut,
    Failure::Stopped,
    Failure::DatabaseAway,
    Failure::Frozen,
];

/// Work goes on for so many rounds. After two minutes its call would leave it to the background.
const ROUNDS_OF_WORK: usize = 4;

/// Longer than the lease of a server.
const FROZEN_FOR: Duration = Duration::from_secs(13);

/// The storm: all that is in it, and the dice.
struct Storm {
    postgres: Postgres,
    servers: Vec<Gantry>,
    /// A runner, and its way to a server.
    runners: Vec<(Runner, Proxy)>,
    /// The work of each runner, and one who watches from another server.
    jobs: Vec<(usize, Job, Talk)>,
    seed: u32,
    works: u32,
}

impl Storm {
    async fn begin(seed: u32, runners: usize) -> Self {
        let postgres = Postgres::start();
        let first = Gantry::with(Setup {
            database: Some(postgres.database()),
            settings: format!(
                "{}[peers]\nlisten = \"127.0.0.1:0\"\n",
                Setup::with_short_links().settings
            ),
            ..Setup::default()
        })
        .await;
        let mut servers = vec![first];
        while servers.len() < SERVERS {
            let another = servers[0].another().await;
            servers.push(another);
        }
        let mut storm = Self {
            postgres,
            servers,
            runners: Vec::new(),
            jobs: Vec::new(),
            seed,
            works: 0,
        };
        for number in 0..runners {
            let server = &storm.servers[number % SERVERS];
            let front = Proxy::before(server.url()).await;
            let runner = server.runner_by_way_of(front.url(), &name(number)).await;
            storm.runners.push((runner, front));
        }
        storm
    }

    /// A number below this one, by the seed (the generator of Park and Miller).
    fn dice(&mut self, below: usize) -> usize {
        self.seed = u32::try_from(u64::from(self.seed) * 16_807 % 2_147_483_647).unwrap_or(1);
        self.seed as usize % below
    }

    /// Work for a random runner, asked for at a random server and watched at another one.
    async fn ask(&mut self) {
        let (runner, asked_at, watched_at) = (
            self.dice(self.runners.len()),
            self.dice(SERVERS),
            self.dice(SERVERS),
        );
        self.works += 1;
        let work = Work(1000 + self.works);
        let place = (&*name(runner), &self.runners[runner].0);
        let job = Job::begin_on(&self.servers[asked_at], place, work).await;
        let watcher = job.talk.through(&self.servers[watched_at]);
        self.jobs.push((runner, job, watcher));
    }

    /// All runners find a server that is none of this number.
    fn lead_away_from(&mut self, server: usize) {
        for number in 0..self.runners.len() {
            let other = (server + 1 + self.dice(SERVERS - 1)) % SERVERS;
            self.runners[number].1.leads_to(self.servers[other].url());
        }
    }

    async fn fail(&mut self, failure: Failure) {
        let server = self.dice(SERVERS);
        match failure {
            Failure::Killed => {
                self.lead_away_from(server);
                self.servers[server].kill_server().await;
                sleep(FROZEN_FOR).await;
                self.servers[server].start_server().await;
            }
            Failure::Stopped => {
                self.lead_away_from(server);
                let stopped = self.servers[server].stop_server().await;
                assert_eq!(stopped, Some(0), "it stops in order");
                self.servers[server].start_server().await;
            }
            Failure::Frozen => {
                self.lead_away_from(server);
                self.servers[server].signal_server("STOP");
                sleep(FROZEN_FOR).await;
                self.servers[server].signal_server("CONT");
            }
            Failure::Cut => {
                let runner = self.dice(self.runners.len());
                self.runners[runner].1.leads_to(self.servers[server].url());
                self.runners[runner].1.cut();
            }
            Failure::DatabaseAway => {
                self.postgres.stop();
                self.postgres.start_again();
            }
        }
        for number in 0..self.runners.len() {
            self.servers[0].until_online(&name(number), true).await;
        }
    }

    /// Lets all work end, and holds it to what was promised.
    async fn end(&mut self) {
        let (mut watchers, mut of_runner) = (Vec::new(), Vec::new());
        of_runner.resize_with(self.runners.len(), Vec::new);
        for (runner, job, watcher) in std::mem::take(&mut self.jobs) {
            watchers.push((job.turn(), job.talk.through(&self.servers[0]), watcher));
            of_runner[runner].push(job);
        }
        for (jobs, (runner, _)) in of_runner.into_iter().zip(&self.runners) {
            finish(jobs, runner).await;
        }
        for (turn, mut late, mut watcher) in watchers {
            let (late_told, told) = (late.ended(turn).await, watcher.ended(turn).await);
            assert_eq!(told.outcome, late_told.outcome);
            for talk in [&late, &watcher] {
                let seqs: Vec<_> = talk.heard.iter().filter_map(seq).collect();
                let gapless: Vec<_> = (1..=seqs.len() as u64).collect();
                assert_eq!(seqs, gapless, "{}", talk.session());
            }
        }
    }
}

fn name(runner: usize) -> String {
    format!("runner-{runner}")
}

fn seq(item: &Followed) -> Option<u64> {
    match item {
        Followed::Event(event) => Some(event.seq),
        _ => None,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "make soak says how long the storm is"
)]
fn asked_for(variable: &str) -> Option<u32> {
    std::env::var(variable).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_around_three_servers_each_effect_is_there_once_with_every_byte() {
    let seed = asked_for("GANTRY_CHAOS_SEED").unwrap_or(1);
    let rounds = asked_for("GANTRY_CHAOS_ROUNDS").unwrap_or(4);
    let runners = asked_for("GANTRY_CHAOS_RUNNERS").unwrap_or(3);
    let mut storm = Storm::begin(seed, runners as usize).await;
    for round in 0..rounds as usize {
        for _ in 0..2 {
            storm.ask().await;
        }
        // The first rounds have each failure but the last one; after them the dice choose.
        let failure = match FAILURES.get(round) {
            Some(failure) => *failure,
            None => FAILURES[storm.dice(FAILURES.len())],
        };
        println!("seed {seed}, round {round}: {failure:?}");
        storm.fail(failure).await;
        if (round + 1) % ROUNDS_OF_WORK == 0 {
            storm.end().await;
        }
    }
    storm.end().await;
}
