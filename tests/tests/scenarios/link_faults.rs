//! Networks that are bad in every way that a process can make them: nothing of a command is lost,
//! doubled or run again, whatever becomes of the link.

use std::time::Duration;

use shared_types::event::CallOutcome;
use tests::{
    gantry::{Gantry, Runner, Setup},
    over_both,
    peer::Over,
    proxy::{Proxy, Way},
    work::{Job, Work},
};

/// Bytes to the server by which each connection outlives the one before it: about a frame.
const STEP_BYTES: u64 = 150;

/// A connection that carries output is cut after so many bytes.
const CUT_EVERY_BYTES: u64 = 300_000;

/// Numbers of a command that writes some megabytes.
const LARGE_LINES: u32 = 300_000;

/// Connections that are cut, each at another place.
const CUTS: u64 = 40;

/// Every limit of silence in a thirtieth of its time: to these, 20 s are what 10 minutes are to the
/// defaults. How long a handshake or an answer to the question may take is no such limit.
const EVERY_LIMIT_SHORT: &str = "
[link]
heartbeat_every_ms = 333
silence_ms = 1000
lease_ms = 1500
[connections]
first_request_within_ms = 2000
quiet_at_most_ms = 2000
answer_within_ms = 1000
taken_within_ms = 2000
keep_alive_every_ms = 666
keep_alive_within_ms = 1000
";

over_both! {
    #[tokio::test(flavor = "multi_thread")]
    a_build_goes_on_while_its_link_is_cut_at_every_stage_from_the_handshake_on,
    a_link_whose_one_way_is_closed_is_replaced_and_nothing_is_lost,
    a_link_that_is_stuck_one_way_is_noticed_by_its_silence_and_nothing_is_lost,
    a_large_output_over_a_link_that_is_cut_every_few_pieces_is_told_without_a_wrong_byte,
    a_server_that_refuses_connections_for_a_while_finds_the_whole_output_later,
    a_link_that_passes_a_few_bytes_at_a_time_and_late_carries_everything,
    a_command_that_is_silent_for_many_times_every_limit_survives_every_hop,
}

async fn a_build_goes_on_while_its_link_is_cut_at_every_stage_from_the_handshake_on(over: Over) {
    let (gantry, proxy, runner) = behind_a_proxy(
        over,
        Setup {
            tls: true,
            ..Setup::with_short_links()
        },
    )
    .await;
    let job = Job::begin(&gantry, &runner, Work(41)).await;
    proxy.set(|weather| {
        weather.cut_after = 1;
        weather.cut_later_by = STEP_BYTES;
    });
    proxy.cut();
    let made = proxy.passed().connections;
    proxy
        .until(|passed| passed.connections >= made + CUTS)
        .await;
    proxy.clear();
    gantry.until_online("laptop", true).await;
    job.finish(&runner).await;
    let runners = gantry.client().runners().await.expect("a list");
    assert!(!runners[0].locked, "it was never taken for a copy");
}

async fn a_link_whose_one_way_is_closed_is_replaced_and_nothing_is_lost(over: Over) {
    let (gantry, proxy, runner) = behind_a_proxy(over, Setup::with_short_links()).await;
    for (seed, way) in [(42, Way::ToServer), (43, Way::ToRunner)] {
        let job = Job::begin(&gantry, &runner, Work(seed)).await;
        proxy.half_close(way);
        proxy.until_new_connection().await;
        gantry.until_online("laptop", true).await;
        job.finish(&runner).await;
    }
}

async fn a_link_that_is_stuck_one_way_is_noticed_by_its_silence_and_nothing_is_lost(over: Over) {
    let (gantry, proxy, runner) = behind_a_proxy(over, Setup::with_short_links()).await;
    for (seed, way) in [(44, Way::ToServer), (45, Way::ToRunner)] {
        let mut job = Job::begin(&gantry, &runner, Work(seed)).await;
        proxy.stall(way);
        proxy.until_new_connection().await;
        job.talk.until_notice("offline since").await;
        proxy.clear();
        gantry.until_online("laptop", true).await;
        job.finish(&runner).await;
    }
}

async fn a_large_output_over_a_link_that_is_cut_every_few_pieces_is_told_without_a_wrong_byte(
    over: Over,
) {
    let (gantry, proxy, runner) = behind_a_proxy(over, Setup::with_short_links()).await;
    let work = Work(48);
    proxy.set(|weather| weather.cut_after = CUT_EVERY_BYTES);
    let made = proxy.passed().connections;
    let command = work.at_once(LARGE_LINES);
    let told = gantry.talk().await.say(&format!("run {command}")).await;
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    work.is_done_in_part(&runner, LARGE_LINES.into(), text);
    let cuts = proxy.passed().connections - made;
    println!("cut {cuts} times");
    assert!(cuts > 1, "it was cut");
}

async fn a_server_that_refuses_connections_for_a_while_finds_the_whole_output_later(over: Over) {
    let (gantry, proxy, runner) = behind_a_proxy(over, Setup::with_short_links()).await;
    let job = Job::begin(&gantry, &runner, Work(46)).await;
    proxy.set(|weather| weather.refuses = true);
    proxy.cut();
    let made = proxy.passed().connections;
    proxy.until(|passed| passed.connections >= made + 10).await;
    // The command ends while nobody can be told.
    job.work.is_enough(&runner.workspace());
    job.work.lines(&runner).await;
    proxy.clear();
    job.finish(&runner).await;
}

async fn a_link_that_passes_a_few_bytes_at_a_time_and_late_carries_everything(over: Over) {
    let (gantry, proxy, runner) = behind_a_proxy(
        over,
        Setup {
            tls: true,
            ..Setup::default()
        },
    )
    .await;
    proxy.set(|weather| {
        weather.slice = 13;
        weather.delay = Duration::from_millis(1);
    });
    let made = proxy.passed().connections;
    let job = Job::begin(&gantry, &runner, Work(47)).await;
    job.finish(&runner).await;
    assert_eq!(proxy.passed().connections, made, "a slow link is a link");
}

async fn a_command_that_is_silent_for_many_times_every_limit_survives_every_hop(over: Over) {
    let (gantry, to_runner, _runner) = behind_a_proxy(
        over,
        Setup {
            tls: true,
            settings: EVERY_LIMIT_SHORT.to_owned(),
            ..Setup::default()
        },
    )
    .await;
    let to_client = Proxy::before(gantry.url()).await;
    let ping_every = Duration::from_millis(500);
    let mut talk = gantry.talk_by_way_of(to_client.url(), ping_every).await;
    let turn = talk.send("run echo begun; sleep 8; echo awake").await;
    talk.until_output("begun").await;
    let made = [&to_runner, &to_client].map(|proxy| proxy.passed().connections);
    let told = talk.ended(turn).await;
    assert!(
        told.calls()[0].1.starts_with("begun\nawake\n"),
        "{:?}",
        told.calls()
    );
    let made_later = [&to_runner, &to_client].map(|proxy| proxy.passed().connections);
    assert_eq!(made_later, made, "they were the same connections all along");
}

/// A server, and a runner that reaches it through a proxy.
async fn behind_a_proxy(over: Over, setup: Setup) -> (Gantry, Proxy, Runner) {
    let gantry = Gantry::with(setup).await;
    let proxy = Proxy::before(gantry.url()).await;
    let token = gantry.join_token("laptop").await;
    let mut runner = Runner::enrol(proxy.url(), &token, "laptop").await;
    runner.options(&["--transport", over.name()]);
    runner.start();
    gantry.until_online("laptop", true).await;
    (gantry, proxy, runner)
}
