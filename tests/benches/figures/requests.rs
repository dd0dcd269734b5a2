//! What a request costs before anything is done for it: finding out who asks, and whether they may.

use tests::gantry::Gantry;

use crate::table::{Figure, Goal, Stopwatch, Unit, median};

const ROUNDS: usize = 5;
/// Requests of each kind in one round, one after the other on one connection.
const REQUESTS: usize = 500;

/// Authentication and authorisation, over what the same request costs without them.
pub(crate) async fn figures(watch: &Stopwatch) -> Vec<Figure> {
    let gantry = Gantry::practice().await;
    let mut figure = Figure::new(
        "authentication and authorisation of a request, SQLite (peer: all else of the smallest request)",
        Unit::ShortSeconds,
        Goal::None,
    );
    let ask = async |path: &str, status: u16| {
        let request = gantry.request("get", path).bearer_auth(gantry.token());
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), status, "{path}");
        answer.bytes().await.expect("it is whole");
    };
    for _ in 0..ROUNDS {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..REQUESTS {
            // It is let in, and then asks for no WebSocket.
            ours.push(watch.time(ask("/api/v1/stream", 400)).await.0);
            bare.push(watch.time(ask("/livez", 200)).await.0);
        }
        figure.round(median(&ours) - median(&bare), median(&bare));
    }
    vec![figure]
}
