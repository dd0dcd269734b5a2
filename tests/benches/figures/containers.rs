//! Sandboxes of a pool, against the Docker engine's own ways to run a command: its API and its client.
//!
//! The engine is one that this bench starts (`tests/docker`), with the image of the template `base`. What is
//! made for a sandbox is made for `docker run` as well: both begin with an image that is there.

use std::{process::Stdio, time::Duration};

use reqwest::Client;
use serde_json::{Value, json};
use shared_api::RoleName;
use tests::{
    docker::{Containers, Engine},
    door::Door,
    gantry::{Gantry, Runner, eventually},
};
use tokio::process::Command;

use crate::{
    execs::{APART, TRUE, timed},
    hands::Hands,
    resident::memory,
    table::{Figure, Goal, Stopwatch, Unit, median, percentile},
};

const NAME: &str = "dock";
/// The peer's way into one that runs, as the user and in the folder of our commands.
const EXEC: [&str; 5] = ["exec", "--user", "1000", "--workdir", "/workspace"];
/// The peer's way to a new container.
const RUN: [&str; 5] = ["run", "--rm", "--network=none", "gantry/base:1", TRUE[0]];
const ROUNDS: usize = 5;
/// Commands of each side in one round.
const SAMPLES: usize = 10;
/// New sandboxes of each side in one round.
const NEW: usize = 5;
/// People who begin at the same time.
const BURST: usize = 50;

/// Nothing where there is no engine.
pub(crate) async fn figures(watch: &Stopwatch) -> Vec<Figure> {
    let Some(engine) = Engine::of_the_bench() else {
        println!("left out: the lines of containers, which need root, dockerd and mmdebstrap");
        return Vec::new();
    };
    let mut figures = execs(&engine, watch).await;
    for (what, warm, goal) in [
        ("one waits", 1, Goal::RatioAtMost(0.1)),
        ("none waits", 0, Goal::None),
    ] {
        figures.push(first_commands(&engine, (what, warm, goal), watch).await);
    }
    figures.extend(burst(&engine, watch).await);
    figures
}

/// One command at a time in a container that runs, each after the rest that an agent leaves. Each side's
/// follow one another: an engine works on for a while after it has answered, and that is to slow down
/// only itself.
async fn execs(engine: &Engine, watch: &Stopwatch) -> Vec<Figure> {
    let socket = engine.socket();
    let docker = ["--backend", "docker", "--warm", "0", "--docker-host"];
    let door = Door::open_with(false, &[&docker[..], &[&socket]].concat()).await;
    let containers = engine.containers_of(door.runner_id());
    let hands = Hands::of(&door);
    // The first one makes the container.
    hands.forget(timed(&hands, TRUE, watch).await.1).await;
    let container = containers.ids().first().expect("one").clone();
    let api = Api::of(engine);
    let figure = |peer: &str, goal| {
        let what = format!("exec `true` in a running container (peer: {peer})");
        Figure::new(what, Unit::Seconds, Goal::RatioAtMost(goal))
    };
    let mut by_api = figure("the engine's API; goal 20 times faster", 0.05);
    let mut by_client = figure("`docker exec`; goal 30 times faster", 0.033);
    for _ in 0..ROUNDS {
        let (mut ours, mut api_took, mut client_took) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..SAMPLES {
            let (took, id) = timed(&hands, TRUE, watch).await;
            ours.push(took);
            hands.forget(id).await;
            tokio::time::sleep(APART).await;
        }
        for _ in 0..SAMPLES {
            api_took.push(watch.time(api.exec(&container)).await.0);
            tokio::time::sleep(APART).await;
        }
        for _ in 0..SAMPLES {
            let words = [&EXEC[..], &[&container, TRUE[0]]].concat();
            client_took.push(watch.time(ran(engine, &words)).await.0);
            tokio::time::sleep(APART).await;
        }
        by_api.round(median(&ours), median(&api_took));
        by_client.round(median(&ours), median(&client_took));
    }
    vec![by_api, by_client]
}

/// `gantry exec` in a sandbox that there was not, against `docker run`.
async fn first_commands(
    engine: &Engine,
    (what, warm, goal): (&str, usize, Goal),
    watch: &Stopwatch,
) -> Figure {
    let what = format!("new sandbox to the end of its first command, {what} (peer: `docker run`)");
    let mut figure = Figure::new(what, Unit::Seconds, goal);
    let gantry = Gantry::practice().await;
    let (_runner, containers) = pool(&gantry, engine, warm).await;
    for _ in 0..ROUNDS {
        let (mut ours, mut peer) = (Vec::new(), Vec::new());
        for _ in 0..NEW {
            let words = ["exec", "-r", NAME, "--", TRUE[0]];
            let (took, ended) = watch.time(gantry.cli(&words)).await;
            assert!(ended.status.success());
            ours.push(took);
            let removed = gantry.cli(&["sandboxes", "remove", "--yes", NAME]).await;
            assert!(removed.status.success());
            until_waiting(&containers, warm).await;
            peer.push(watch.time(ran(engine, &RUN)).await.0);
        }
        figure.round(median(&ours), median(&peer));
    }
    figure
}

/// People who run their first command at the same time, each in a sandbox of their own.
async fn burst(engine: &Engine, watch: &Stopwatch) -> Vec<Figure> {
    let gantry = Gantry::practice().await;
    let (runner, containers) = pool(&gantry, engine, 0).await;
    let shared = gantry.cli(&["runners", "share", NAME, "--with", "everyone"]);
    assert!(shared.await.status.success());
    let mut people = Vec::new();
    for number in 0..BURST {
        let name = format!("person-{number}");
        people.push(gantry.person(&name, RoleName::Member).await);
    }
    let mut figures = Vec::new();
    let before = memory(runner.pid(), "VmRSS");
    let ours = people.iter().map(|token| {
        let mut command = gantry.terminal(&["exec", "-r", NAME, "--", TRUE[0]]);
        command.env("GANTRY_TOKEN", token);
        command
    });
    let ours = at_once(ours.collect(), watch).await;
    let after = memory(runner.pid(), "VmRSS");
    let peers = (0..BURST).map(|_| client(engine, &RUN));
    let peers = at_once(peers.collect(), watch).await;
    for (which, part) in [("median", 0.5), ("p95", 0.95)] {
        let what =
            format!("{BURST} first commands at once, none waits, {which} (peer: `docker run`)");
        let mut figure = Figure::new(what, Unit::Seconds, Goal::None);
        figure.round(percentile(&ours, part), percentile(&peers, part));
        figures.push(figure);
    }
    let what = format!("of {BURST} first commands at once, those that succeeded");
    let mut succeeded = Figure::new(what, Unit::Count, Goal::AtLeast(BURST as f64));
    succeeded.round(ours.len() as f64, peers.len() as f64);
    figures.push(succeeded);
    figures.push(Figure::alone(
        "memory of the runner for each of them",
        Unit::SmallMemory,
        Goal::None,
        (after - before) / BURST as f64,
    ));
    drop(containers);
    figures
}

/// Seconds that each of these took that succeeded.
async fn at_once(commands: Vec<Command>, watch: &Stopwatch) -> Vec<f64> {
    let running: Vec<_> = commands
        .into_iter()
        .map(|mut command| {
            let watch = watch.clone();
            command.stdout(Stdio::null()).stderr(Stdio::null());
            tokio::spawn(async move { watch.time(command.status()).await })
        })
        .collect();
    let mut took = Vec::new();
    for one in running {
        if let (seconds, Ok(status)) = one.await.expect("it does not panic")
            && status.success()
        {
            took.push(seconds);
        }
    }
    took
}

async fn pool(gantry: &Gantry, engine: &Engine, warm: usize) -> (Runner, Containers) {
    let token = gantry.join_token(NAME).await;
    let mut runner = Runner::enrol(gantry.url(), &token, NAME).await;
    let (socket, warm_text) = (engine.socket(), warm.to_string());
    let options = [
        "--backend",
        "docker",
        "--docker-host",
        &socket,
        "--warm",
        &warm_text,
    ];
    runner.options(&options);
    runner.start();
    gantry.until_online(NAME, true).await;
    runner.until_logged("isolation is proved").await;
    let id = gantry.client().runners().await.expect("a list")[0].id;
    let containers = engine.containers_of(id);
    until_waiting(&containers, warm).await;
    // What is kept apart was tried out, so that the link is begun anew no more.
    let proved = async || {
        let runners = gantry.client().runners().await.ok()?;
        (runners[0].pool.as_ref()?.isolation != "none").then_some(())
    };
    eventually("the runner says what is kept apart", proved).await;
    (runner, containers)
}

/// Waits until so many containers are there, which run, and no other.
async fn until_waiting(containers: &Containers, warm: usize) {
    let waiting = async || {
        let (all, running) = (containers.ids(), containers.running());
        (all.len() == warm && running.len() == warm).then_some(())
    };
    eventually("the containers wait", waiting).await;
    // Its entry process and its helper begin beside the engine's answer.
    tokio::time::sleep(Duration::from_millis(300)).await;
}

fn client(engine: &Engine, words: &[&str]) -> Command {
    let mut command = Command::new("docker");
    command.args(["--host", &engine.socket()]).args(words);
    command
}

async fn ran(engine: &Engine, words: &[&str]) {
    let mut command = client(engine, words);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.await.expect("it starts").success(), "{words:?}");
}

/// The engine's API, over a connection that is kept.
struct Api(Client);

impl Api {
    fn of(engine: &Engine) -> Self {
        let socket = engine.socket();
        let path = socket.strip_prefix("unix://").expect("a socket").to_owned();
        let client = Client::builder().unix_socket(path).build();
        Self(client.expect("a client"))
    }

    /// Runs the command to its end, and asks for its exit code.
    async fn exec(&self, container: &str) {
        let create = json!({ "Cmd": TRUE, "User": "1000", "WorkingDir": "/workspace", "AttachStdout": true, "AttachStderr": true });
        let made = self
            .post(&format!("containers/{container}/exec"), create)
            .await;
        let made: Value = made.json().await.expect("JSON");
        let id = made["Id"].as_str().expect("an id");
        let attached = json!({ "Detach": false, "Tty": false });
        let output = self.post(&format!("exec/{id}/start"), attached).await;
        output.bytes().await.expect("its output");
        let url = format!("http://docker/v1.41/exec/{id}/json");
        let ended: Value = self
            .0
            .get(url)
            .send()
            .await
            .expect("an answer")
            .json()
            .await
            .expect("JSON");
        assert_eq!(ended["ExitCode"], 0);
    }

    async fn post(&self, path: &str, body: Value) -> reqwest::Response {
        let url = format!("http://docker/v1.41/{path}");
        let answer = self
            .0
            .post(url)
            .json(&body)
            .send()
            .await
            .expect("an answer");
        answer.error_for_status().expect("it is done")
    }
}
