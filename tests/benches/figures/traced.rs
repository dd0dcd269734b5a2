//! What traces cost: the same server and runner with a collector, against those without one.

use shared_types::event::TurnOutcome;
use tests::{
    collector::Collector,
    gantry::{Gantry, Runner, Setup, Talk},
    model_server::ModelServer,
};

use crate::{
    server::{COMMAND, call_took, replies},
    table::{Figure, Goal, Stopwatch, Unit, median},
};

const ROUNDS: usize = 7;
/// Turns of a round, after one that is not measured.
const TURNS: usize = 30;
const GOAL: Goal = Goal::RatioAtMost(1.03);

/// A server with its runner and its model.
struct Side {
    gantry: Gantry,
    model: ModelServer,
    _runner: Runner,
}

/// Whole turns and the tool call within each.
pub(crate) async fn figures(watch: &Stopwatch) -> Vec<Figure> {
    let collector = Collector::start().await;
    let (on, off) = (Side::start(Some(&collector)).await, Side::start(None).await);
    let what = "a turn with a Shell call, all of it traced (peer: the same, untraced)";
    let mut turn = Figure::new(what, Unit::Seconds, GOAL);
    let what = "the durable tool call of it, traced (peer: the same, untraced)";
    let mut call = Figure::new(what, Unit::Seconds, GOAL);
    for _ in 0..ROUNDS {
        let mut talks = [on.gantry.talk().await, off.gantry.talk().await];
        let (mut turns, mut calls) = ([vec![], vec![]], [vec![], vec![]]);
        for number in 0..=TURNS {
            for (place, side) in [&on, &off].into_iter().enumerate() {
                let took = side.turn(&mut talks[place], watch).await;
                if number > 0 {
                    turns[place].push(took.0);
                    calls[place].push(took.1);
                }
            }
        }
        turn.round(median(&turns[0]), median(&turns[1]));
        call.round(median(&calls[0]), median(&calls[1]));
    }
    assert!(collector.spans().len() > ROUNDS * TURNS, "it was traced");
    vec![turn, call]
}

impl Side {
    async fn start(collector: Option<&Collector>) -> Self {
        let model = ModelServer::start().await;
        let gantry = Gantry::with(Setup {
            model: Some(model.base_url()),
            settings: collector.map(Collector::settings).unwrap_or_default(),
            ..Setup::default()
        })
        .await;
        let token = gantry.join_token("bench").await;
        let mut runner = Runner::enrol(gantry.url(), &token, "bench").await;
        if let Some(collector) = collector {
            runner.options(&["--traces", &collector.url()]);
        }
        runner.start();
        gantry.until_online("bench", true).await;
        Self {
            gantry,
            model,
            _runner: runner,
        }
    }

    /// How long a turn took, and its tool call.
    async fn turn(&self, talk: &mut Talk, watch: &Stopwatch) -> (f64, f64) {
        self.model.script(replies(COMMAND));
        let (took, told) = watch.time(talk.say("go")).await;
        assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
        (took, call_took(&told))
    }
}
