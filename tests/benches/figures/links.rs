//! Many idle links to the real server over TLS: what each costs, and what is given back.
//!
//! The runners are peers in this process; the server's memory is its own. It is read once nothing
//! changes any more: after more than one round of heartbeats and of their records.

use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use tests::{fleet::Fleet, gantry::Gantry, peer::Over};
use tokio::time::sleep;

use crate::{
    resident::memory,
    table::{Figure, Goal, MIB, Unit},
};

/// Longer than a heartbeat, its record, and a connection's quiet time before its first request.
const SETTLES_WITHIN: Duration = Duration::from_secs(15);
const GIB: f64 = 1024.0 * MIB;
/// Descriptors beside those of the links.
const OTHER_DESCRIPTORS: u64 = 256;

/// What this many idle links cost, over gRPC and as WebSockets.
pub(crate) async fn idle(count: usize) -> Vec<Figure> {
    if !descriptors_for(count) {
        eprintln!("{count} links are left out: this process may not open as many descriptors");
        return Vec::new();
    }
    let mut figures = idle_over(Over::Grpc, count, "TLS links", 20_000.0).await;
    figures.extend(idle_over(Over::WebSocket, count, "TLS WebSocket links", 45_000.0).await);
    figures
}

async fn idle_over(over: Over, count: usize, links: &str, per_gib: f64) -> Vec<Figure> {
    let gantry = Gantry::with_tls().await;
    let mut fleet = Fleet::enrol(&gantry, over, count).await;
    sleep(SETTLES_WITHIN).await;
    let resident = || memory(gantry.server_pid(), "VmRSS");
    let before = resident();
    fleet.link().await;
    assert_eq!(fleet.tally().refused, Vec::<String>::new());
    sleep(SETTLES_WITHIN).await;
    let with = resident();
    fleet.vanish().await;
    sleep(SETTLES_WITHIN).await;
    let after = resident();

    let each = (with - before) / count as f64;
    let alone = |what: String, unit, goal, value| Figure::alone(what, unit, goal, value);
    vec![
        alone(
            format!("memory of the server for each of {count} idle {links}"),
            Unit::SmallMemory,
            Goal::AtMost(GIB / per_gib),
            each,
        ),
        alone(
            format!("idle runners per GiB of its memory, by {count} {links}"),
            Unit::Count,
            Goal::AtLeast(per_gib),
            GIB / each,
        ),
        alone(
            format!("its memory before {count} {links}"),
            Unit::Memory,
            Goal::None,
            before,
        ),
        alone(
            "its memory with them".to_owned(),
            Unit::Memory,
            Goal::None,
            with,
        ),
        alone(
            format!(
                "its memory {} s after they all vanished",
                SETTLES_WITHIN.as_secs()
            ),
            Unit::Memory,
            Goal::None,
            after,
        ),
    ]
}

/// Raises the limit where that is allowed; says whether it is enough.
fn descriptors_for(links: usize) -> bool {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // What is refused here shows in the limit below.
    let _ = setrlimit(Resource::Nofile, limit);
    let enough = links as u64 + OTHER_DESCRIPTORS;
    getrlimit(Resource::Nofile)
        .current
        .is_none_or(|current| current >= enough)
}
