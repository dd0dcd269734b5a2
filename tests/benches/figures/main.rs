//! Figures against real peers, as ratios, in one run: `make bench`.
//!
//! Nothing here is a test: no time is asserted, because machines differ and are noisy. A ratio
//! holds: ours and the peer's alternate on the same machine, in rounds, and what is printed is the
//! median of the rounds (and the least and the most). What each line includes:
//! - *exec*: the router, HTTP/2 (and TLS) on loopback, and the release runner; placement and the
//!   intent's and result's records happen in memory, so none of the server's commits is in it;
//! - *stdout*, *file*: the same as exec, of 1 GiB; nobody but the reader keeps what arrives;
//! - *`gantry`*: the release server, one runner and the terminal client, each a program;
//! - *authentication*: what a request costs before anything is done for it;
//! - *durable turns*, *pages*: the release server on each database, which syncs every commit;
//! - *turn*, *durable tool call*: the release server with its database, and all of the above;
//! - *traced*: as *turn*, of two servers in one run, one of which sends its spans to a collector;
//! - *container*: the same as exec, of a runner on a Docker engine; new sandboxes with the whole product;
//! - *console*: the release server, one runner and the web console in Chromium; figures alone, without a peer;
//! - *links*, *storm*: the release server over TLS, and runners that speak the whole protocol but
//!   run nothing.
//!
//! Words after the program's name choose groups of lines (`ROWS="links storm" make bench`):
//! `execs`, `layers`, `containers`, `ssh`, `stdout`, `files`, `people`, `requests`, `databases`,
//! `server`, `traces`, `console`, `links`, `many-links`, `storm`.

mod console;
mod containers;
mod databases;
mod execs;
mod files;
mod hands;
mod layers;
mod links;
mod local;
mod people;
mod requests;
mod resident;
mod server;
mod ssh;
mod stdout;
mod storm;
mod table;
mod traced;

use std::time::Duration;

use execs::{APART, TRUE};
use table::Stopwatch;
use tests::door::Door;

/// As in the server, whose router is in this process for some lines.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const SHELL: &[&str] = &["/usr/bin/bash", "-c", "echo hello"];

/// Idle links: as many as a team has, and as many as one server is to hold.
const LINKS: [(&str, usize); 2] = [("links", 1_000), ("many-links", 10_000)];

#[tokio::main]
async fn main() {
    shared_tls::install_provider();
    // Cargo adds a word of its own, which begins with a dash.
    let words = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'));
    let groups: Vec<_> = words.collect();
    let watch = Stopwatch::new();
    let (took, figures) = watch.time(figures(&groups, &watch)).await;
    table::print(&figures);
    println!("\nmedian (least–most) of the rounds; taken in {took:.0} s");
}

async fn figures(groups: &[String], watch: &Stopwatch) -> Vec<table::Figure> {
    let wanted = |group: &str| groups.is_empty() || groups.iter().any(|word| word == group);
    let mut figures = Vec::new();
    if wanted("execs") {
        figures.extend(exec_figures(watch).await);
    }
    if wanted("layers") {
        figures.extend(layers::figures(watch).await);
    }
    if wanted("containers") {
        figures.extend(containers::figures(watch).await);
    }
    figures.extend(figures_with_ssh(wanted, watch).await);
    if wanted("requests") {
        figures.extend(requests::figures(watch).await);
    }
    if wanted("databases") {
        figures.extend(databases::figures(watch).await);
    }
    if wanted("server") {
        figures.extend(server::figures(watch).await);
    }
    if wanted("traces") {
        figures.extend(traced::figures(watch).await);
    }
    if wanted("console") {
        console::tell().await;
    }
    for (group, count) in LINKS {
        if wanted(group) {
            figures.extend(links::idle(count).await);
        }
    }
    if wanted("storm") {
        figures.extend(storm::figures(watch).await);
    }
    figures
}

/// The groups that have OpenSSH as a peer.
async fn figures_with_ssh(wanted: impl Fn(&str) -> bool, watch: &Stopwatch) -> Vec<table::Figure> {
    let mut figures = Vec::new();
    if !["ssh", "stdout", "files", "people"]
        .into_iter()
        .any(&wanted)
    {
        return figures;
    }
    let ssh = ssh::Ssh::start().await;
    let door = Door::open(true).await;
    if wanted("ssh")
        && let Some(ssh) = &ssh
    {
        figures.extend(execs::against_ssh(&door, ssh, watch).await);
    }
    if wanted("stdout") {
        figures.extend(stdout::figures(&door, ssh.as_ref(), watch).await);
    }
    if wanted("files")
        && let Some(ssh) = &ssh
    {
        figures.extend(files::figures(&door, ssh, watch).await);
    }
    if wanted("people")
        && let Some(ssh) = &ssh
    {
        figures.extend(people::figures(&door, ssh, watch).await);
    }
    figures
}

async fn exec_figures(watch: &Stopwatch) -> Vec<table::Figure> {
    let plain = Door::open(false).await;
    let tls = Door::open(true).await;
    let mut figures = Vec::new();
    for (link, door) in [("TLS", &tls), ("plain", &plain)] {
        for (how, rest) in [("20 ms apart", APART), ("back to back", Duration::ZERO)] {
            let name = format!("exec `true`, p50, {link} link, {how}");
            figures.push(execs::round_trip(&name, door, TRUE, rest, watch).await);
        }
    }
    let name = "exec `bash -c 'echo hello'`, p50, TLS link, 20 ms apart";
    figures.push(execs::round_trip(name, &tls, SHELL, APART, watch).await);
    figures.extend([
        execs::many_at_once(&plain, TRUE, watch).await,
        execs::kept_output(&plain, watch).await,
        execs::large_output(&plain, watch).await,
    ]);
    figures
}
