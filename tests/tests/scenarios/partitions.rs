//! Real partitions, by network namespaces: packets vanish and nobody is told.
//!
//! Each test keeps to one thread, because that is what moves to the server's machine.

use tests::{
    gantry::{Gantry, Runner, Setup, eventually},
    network::{Machines, Network},
    over_both,
    peer::Over,
    work::{Job, Work},
};
use tokio::time::sleep;

over_both! {
    #[tokio::test]
    a_partition_that_is_shorter_than_the_lease_is_not_even_noticed,
    a_partition_that_is_longer_than_the_lease_costs_nothing_but_time,
    a_runner_that_hears_and_is_not_heard_links_anew_and_loses_nothing,
    a_laptop_that_changes_its_network_in_the_middle_of_a_build_finishes_it,
}

async fn a_partition_that_is_shorter_than_the_lease_is_not_even_noticed(over: Over) {
    let (machines, gantry, runner) = setting(over).await;
    let job = Job::begin(&gantry, &runner, Work(51)).await;
    machines.part();
    sleep(Setup::SHORT_SILENCE / 3).await;
    machines.heal();
    job.finish(&runner).await;
    assert_eq!(links(&runner), 1);
}

async fn a_partition_that_is_longer_than_the_lease_costs_nothing_but_time(over: Over) {
    let (machines, gantry, runner) = setting(over).await;
    let mut job = Job::begin(&gantry, &runner, Work(52)).await;
    machines.part();
    job.talk.until_notice("offline since").await;
    // The command ends while the machines cannot see each other.
    job.work.is_enough(&runner.workspace());
    job.work.lines(&runner).await;
    machines.heal();
    job.finish(&runner).await;
}

async fn a_runner_that_hears_and_is_not_heard_links_anew_and_loses_nothing(over: Over) {
    let (machines, gantry, runner) = setting(over).await;
    let mut job = Job::begin(&gantry, &runner, Work(53)).await;
    machines.drop_to_server();
    job.talk.until_notice("offline since").await;
    machines.heal();
    gantry.until_online("laptop", true).await;
    job.finish(&runner).await;
}

async fn a_laptop_that_changes_its_network_in_the_middle_of_a_build_finishes_it(over: Over) {
    let (machines, gantry, runner) = setting(over).await;
    for (seed, network) in [(54, Network::Train), (55, Network::Office)] {
        let job = Job::begin(&gantry, &runner, Work(seed)).await;
        let links = links(&runner);
        machines.move_laptop(network);
        // Nobody is told: the runner misses the server, and asks for a link on the new network.
        eventually("it links anew", || async {
            (self::links(&runner) > links).then_some(())
        })
        .await;
        job.finish(&runner).await;
    }
}

/// How many links the runner has had.
fn links(runner: &Runner) -> usize {
    runner.log().matches("runner connected").count()
}

/// A server with TLS, and a laptop on another machine.
async fn setting(over: Over) -> (Machines, Gantry, Runner) {
    let machines = Machines::new();
    let gantry = Gantry::with(Setup {
        tls: true,
        listen: machines.listen(),
        ..Setup::with_short_links()
    })
    .await;
    let token = gantry.join_token("laptop").await;
    let mut runner = Runner::enrol_by(&machines.laptop(), gantry.url(), &token, "laptop").await;
    runner.options(&["--transport", over.name()]);
    runner.start();
    gantry.until_online("laptop", true).await;
    (machines, gantry, runner)
}
