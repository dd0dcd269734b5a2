//! Settings that change while the server runs, and what an operator is told of that.

use std::{
    ffi::CStr,
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    mem::MaybeUninit,
    os::unix::fs::symlink,
    path::Path,
    process::Command,
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, inotify, mknodat},
    pty::OpenptFlags,
};
use shared_client::{Client, ClientError, Options, PING_EVERY, Trust};
use shared_tls::ServerTls;
use shared_types::{Digest, OsEntropy, event::CallOutcome};
use tests::{
    gantry::{Disk, Gantry, Process, Setup, binary, eventually},
    work::Work,
};
use tokio::sync::oneshot;

/// What a verb says, and whether it succeeds.
async fn verb(gantry: &Gantry, words: &[&str]) -> (bool, String) {
    let said = gantry.operator(words).output().await.expect("it starts");
    let text = [said.stdout, said.stderr].concat();
    (
        said.status.success(),
        String::from_utf8(text).expect("it is text"),
    )
}

/// Waits until the server is healthy: where the machine is busy, a verb may not wait for the answer.
async fn until_healthy(gantry: &Gantry) {
    let yes = (true, format!("{} is ready\n", gantry.url()));
    eventually("it is healthy", || async {
        (verb(gantry, &["health"]).await == yes).then_some(())
    })
    .await;
}

async fn reload(gantry: &Gantry, settings: &str) -> (bool, String) {
    fs::write(gantry.home().join("gantry.toml"), settings).expect("it is written");
    verb(gantry, &["reload"]).await
}

/// How often the server reloaded its settings, and how often it refused to.
async fn reloads(gantry: &Gantry) -> [u32; 2] {
    let metrics = reqwest::Client::new()
        .get(format!("{}/metrics", gantry.url()))
        .bearer_auth(gantry.token());
    let page = metrics.send().await.expect("it answers").text().await;
    let page = page.expect("it is text");
    ["done", "refused"].map(|outcome| {
        let series = format!("gantry_reloads_total{{outcome=\"{outcome}\"}} ");
        let mut lines = page.lines().filter_map(|line| line.strip_prefix(&series));
        let value = lines.next().expect("the series is there");
        value.parse().expect("a number")
    })
}

/// The status of a request that names this host.
async fn asked_as(gantry: &Gantry, host: &str) -> u16 {
    let asked = reqwest::Client::new()
        .get(format!("{}/livez", gantry.url()))
        .header("host", host);
    asked.send().await.expect("it answers").status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_logged_changes_with_a_reload_and_what_needs_a_restart_is_named() {
    let gantry = Gantry::practice().await;
    assert_eq!(reloads(&gantry).await, [0, 0]);
    let told = || gantry.log().matches("the settings were reloaded").count();
    let quiet = reload(&gantry, "[log]\nfilter = \"error\"\n").await;
    assert_eq!(quiet, (true, "reloaded\n".to_owned()));
    assert_eq!(told(), 0, "it is no error");
    let loud = "[log]\nfilter = \"info\"\n[turns]\nat_once = 2\n[link]\nlease_ms = 60000\n";
    let named = "needs a restart: link.lease_ms, turns.at_once";
    let loud = reload(&gantry, loud).await;
    assert_eq!(loud, (true, format!("reloaded; {named}\n")));
    assert_eq!(told(), 1);
    assert_eq!(reloads(&gantry).await, [2, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_names_change_with_a_reload_also_one_by_signal() {
    let gantry = Gantry::practice().await;
    let begin = async || gantry.client().create_session("").await;
    assert_eq!(asked_as(&gantry, "gantry.example").await, 421);
    begin().await.expect("thousands may be there");
    let less = "[limits]\nsessions_at_most = 1\n[server]\nnames = [\"gantry.example\"]\n";
    let (done, said) = reload(&gantry, less).await;
    assert!(done, "{said}");
    let refused = begin().await.expect_err("one may, and there is one");
    assert!(
        refused.to_string().contains("sessions_at_most"),
        "{refused}"
    );
    assert_eq!(asked_as(&gantry, "gantry.example").await, 200);

    fs::remove_file(gantry.home().join("gantry.toml")).expect("it is there");
    gantry.signal_server("HUP");
    eventually("the name is none any more", || async {
        (asked_as(&gantry, "gantry.example").await == 421).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistake_in_the_settings_is_named_and_nothing_of_them_is_taken_up() {
    let gantry = Gantry::practice().await;
    let good = "[server]\nnames = [\"gantry.example\"]\n";
    for (wrong, named) in [
        ("[log]\nfilter = \"inof\"\n", "inof"),
        ("[turns]\nat_once = 0\n", "at_once under [turns]"),
        ("[limits]\nnew = 1\n", "gantry.toml, line 4"),
        (
            "[tls]\ncertificate = \"/nowhere\"\nkey = \"/nowhere\"\n",
            "/nowhere",
        ),
    ] {
        let (done, said) = reload(&gantry, &format!("{good}{wrong}")).await;
        assert!(!done && said.contains("all are as they were"), "{said}");
        assert!(said.contains(named), "{said}");
        assert_eq!(asked_as(&gantry, "gantry.example").await, 421);
    }
    assert_eq!(reloads(&gantry).await, [0, 4]);
    let refusals = gantry
        .log()
        .matches("the settings were not reloaded")
        .count();
    assert_eq!(refusals, 4, "each is told in the log");

    let link = gantry.home().join("server/keys/link.pem");
    let held = fs::read(&link).expect("a key");
    fs::write(&link, "no key").expect("it is written");
    let (done, said) = reload(&gantry, good).await;
    assert!(
        !done && said.contains("not an Ed25519 private key"),
        "{said}"
    );
    assert_eq!(asked_as(&gantry, "gantry.example").await, 421);
    fs::write(&link, held).expect("it is written");
    assert_eq!(reload(&gantry, good).await, (true, "reloaded\n".to_owned()));
    assert_eq!(asked_as(&gantry, "gantry.example").await, 200);
}

/// What follows at the other end of this named pipe, once there is one.
async fn feed(pipe: &Path) -> File {
    let pipe = pipe.to_owned();
    let open = move || File::options().write(true).open(pipe);
    let open = tokio::task::spawn_blocking(open).await;
    open.expect("it is opened").expect("it is there")
}

/// Is told once the file of this name in the folder has been opened so often from now on.
fn opened(folder: &Path, name: &'static CStr, times: usize) -> oneshot::Receiver<()> {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).expect("inotify");
    inotify::add_watch(&watch, folder, inotify::WatchFlags::OPEN).expect("it is watched");
    let (tell, told) = oneshot::channel();
    // No task: a test that fails does not wait for it.
    std::thread::spawn(move || {
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(watch, &mut room);
        let mut left = times;
        while left > 0 {
            let event = events.next().expect("an event");
            left -= usize::from(event.file_name() == Some(name));
        }
        let _ = tell.send(());
    });
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_is_answered_by_settings_that_were_read_after_it_was_asked_for() {
    let gantry = Gantry::practice().await;
    let folder = gantry.home().join("server");
    let settings = gantry.home().join("gantry.toml");
    // The server waits at it for what it reads.
    mknodat(CWD, &settings, FileType::Fifo, Mode::RWXU, 0).expect("a named pipe");
    gantry.signal_server("HUP");
    let mut of_signal = feed(&settings).await;

    // The verb opens it twice before it asks, and from then on until it has its answer.
    let asked = opened(&folder, c"server.running", 3);
    let mut asking = tokio::spawn(gantry.operator(&["reload"]).output());
    asked.await.expect("it asks");
    of_signal
        .write_all(b"[server]\nnames = [\"gantry.example\"]\n")
        .expect("it is read");
    drop(of_signal);
    eventually("the first reload is done", || async {
        let told = fs::read_to_string(folder.join("server.running"));
        let told = told.expect("it is there");
        told.contains("\nreload 1 done\n").then_some(())
    })
    .await;
    let looked = opened(&folder, c"server.running", 1);
    tokio::select! {
        looked = looked => looked.expect("it looks"),
        told = &mut asking => panic!("it is told of the reload before: {told:?}"),
    }
    let mut of_verb = feed(&settings).await;
    of_verb
        .write_all(b"[limits]\nnew = 1\n")
        .expect("it is read");
    drop(of_verb);

    let said = asking.await.expect("it goes on").expect("it starts");
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(text.contains("gantry.toml, line 2"), "{said:?}");
    assert_eq!(reloads(&gantry).await, [1, 1]);
}

#[test]
fn a_server_reloads_in_its_terminal_and_stops_in_order_when_that_is_closed() {
    let home = tempfile::tempdir().expect("a folder");
    let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
    let ours = ours.expect("a pty");
    rustix::pty::unlockpt(&ours).expect("it is ours");
    let name = rustix::pty::ptsname(&ours, Vec::new()).expect("it has a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).expect("it opens");
    let end = || theirs.try_clone().expect("a descriptor");
    let mut server = Command::new("setsid")
        .arg("--ctty")
        .arg(binary("gantry-server"))
        .args(["run", "--listen", "127.0.0.1:0"])
        .env_clear()
        .env("GANTRY_HOME", home.path())
        .stdin(end())
        .stdout(end())
        .stderr(end())
        .spawn()
        .expect("setsid starts");
    let mut lines = BufReader::new(fs::File::from(ours)).lines();
    let mut until = |words: &str| {
        let said =
            |line: &std::io::Result<String>| line.as_ref().is_ok_and(|it| it.contains(words));
        assert!(lines.any(|line| said(&line)), "it says {words:?}");
    };
    until("listening on");
    let hangup = Command::new("kill")
        .args(["-HUP", &server.id().to_string()])
        .status();
    assert!(hangup.expect("kill starts").success());
    until("the settings were reloaded");
    drop((lines, theirs));
    let ended = server.wait().expect("it can be waited for");
    assert_eq!(ended.code(), Some(0), "{ended:?}");
}

/// Puts another certificate, with its key, in the place of the server's own.
fn renew(gantry: &Gantry) -> [u8; 32] {
    let new = tempfile::tempdir().expect("a folder");
    let names = ["localhost".to_owned()];
    let made = ServerTls::self_signed(new.path(), &names).expect("it is made");
    for file in ["certificate.pem", "certificate.key"] {
        let place = gantry.home().join("server/keys").join(file);
        fs::copy(new.path().join(file), place).expect("it is put there");
    }
    made.certificate_sha256()
}

/// A folder as Kubernetes mounts a Secret: links to a link to the folder of a version. Puts a new version there, with
/// what is made of its key, and returns the certificate's digest.
fn mount(folder: &Path, version: &str, key: impl Fn(Vec<u8>) -> Vec<u8>) -> [u8; 32] {
    let place = folder.join(version);
    let names = ["localhost".to_owned()];
    let made = ServerTls::self_signed(&place, &names).expect("it is made");
    let file = place.join("certificate.key");
    let text = fs::read(&file).expect("it is there");
    fs::write(&file, key(text)).expect("it is written");
    symlink(version, folder.join("..next")).expect("a link");
    fs::rename(folder.join("..next"), folder.join("..data")).expect("it takes its place");
    for name in ["certificate.pem", "certificate.key"] {
        // They are there from the second version on.
        let _ = symlink(Path::new("..data").join(name), folder.join(name));
    }
    made.certificate_sha256()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_taken_up_by_itself_and_one_that_cannot_be_used_leaves_the_one_before() {
    let secret = tempfile::tempdir().expect("a folder");
    let folder = secret.path();
    mount(folder, "..1", |key| key);
    let file = |name| folder.join(name);
    let (chain, key) = (file("certificate.pem"), file("certificate.key"));
    let gantry = Gantry::with(Setup {
        settings: format!("[tls]\ncertificate = {chain:?}\nkey = {key:?}\n"),
        ..Setup::default()
    })
    .await;
    let serves = async |digest| {
        let owner = owner(&gantry, Trust::Pinned(digest));
        owner.me().await.ok().map(drop)
    };
    let renewed = mount(folder, "..2", |key| key);
    eventually("the new one is served", || serves(renewed)).await;
    mount(folder, "..3", |_| b"no key".to_vec());
    let words = "cannot be used; the one before stays";
    let told = || async { gantry.log().contains(words).then_some(()) };
    eventually("the log says that it cannot be used", told).await;
    assert!(serves(renewed).await.is_some());
    until_healthy(&gantry).await;
    let repaired = mount(folder, "..4", |key| key);
    eventually("the repaired one is served", || serves(repaired)).await;
    assert_eq!(gantry.log().matches(words).count(), 1);
}

/// The owner, on a new connection that accepts this certificate alone.
fn owner(gantry: &Gantry, trust: Trust) -> Client {
    let client = Client::new(Options {
        server: gantry.url().parse().expect("an address"),
        token: Some(gantry.token().to_owned()),
        trust,
        plain_text_allowed: false,
        ping_every: PING_EVERY,
        entropy: std::sync::Arc::new(OsEntropy),
    });
    client.expect("the options are fine")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_for_new_connections_and_open_streams_go_on() {
    let mut gantry = Gantry::with_tls().await;
    let mut runner = gantry.runner("laptop").await;
    let (work, mut talk) = (Work(47), gantry.talk().await);
    let turn = talk.send(&format!("run {}", work.until_enough())).await;
    eventually("the work begins", || async { work.effects(&runner) }).await;
    let (before, renewed) = (gantry.trust().clone(), renew(&gantry));
    owner(&gantry, before.clone()).me().await.expect("not yet");
    let reloaded = verb(&gantry, &["reload"]).await;
    assert_eq!(reloaded, (true, "reloaded\n".to_owned()));

    let stranger = owner(&gantry, before).me().await;
    let stranger = stranger.expect_err("the certificate is another one");
    assert!(
        matches!(stranger, ClientError::Untrusted { .. }),
        "{stranger}"
    );
    let now = Trust::Pinned(renewed);
    owner(&gantry, now.clone())
        .me()
        .await
        .expect("it is trusted");
    until_healthy(&gantry).await;

    // What is open was opened with the certificate before.
    work.is_enough(&runner.workspace());
    let told = talk.ended(turn).await;
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    work.is_done(&runner, text).await;

    gantry.trusts(now);
    runner.stop().await;
    gantry.until_online("laptop", false).await;
    runner.start();
    gantry.until_online("laptop", true).await;
    runner
        .until_logged("the server's identity vouches for it")
        .await;
    let noted = fs::read_to_string(runner.home().join("runner/runner.toml"));
    let digest = Digest::from_slice(&renewed).expect("it has 32 bytes");
    let noted = noted.expect("it is there");
    assert!(noted.contains(&digest.to_string()), "{noted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn health_says_yes_of_a_server_that_is_ready_and_no_of_any_other() {
    for tls in [false, true] {
        let mut gantry = Gantry::with(Setup {
            tls,
            settings: "[server]\ndrain_ms = 300000\n".to_owned(),
            ..Setup::default()
        })
        .await;
        until_healthy(&gantry).await;
        gantry.signal_server("TERM");
        let leaving = format!("{} is not ready: the server stops", gantry.url());
        eventually("it is about to stop", || async {
            let (is_ready, said) = verb(&gantry, &["health"]).await;
            (!is_ready && said.contains(&leaving)).then_some(())
        })
        .await;
        assert_eq!(gantry.stop_server().await, Some(0));
        for words in ["health", "reload"] {
            let (done, said) = verb(&gantry, &[words]).await;
            assert!(!done && said.contains("no server runs on "), "{said}");
        }
        gantry.start_server().await;
        until_healthy(&gantry).await;
        gantry.kill_server().await;
        let (is_ready, said) = verb(&gantry, &["health"]).await;
        assert!(!is_ready && said.contains("no server runs on "), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_a_small_disk_is_ready_only_while_there_is_room() {
    const MIB: u64 = 1024 * 1024;
    let home = tempfile::tempdir().expect("a folder");
    let _disk = Disk::mount(home.path(), 64 * MIB);
    let listen = ["run", "--listen", "127.0.0.1:0"].map(str::to_owned);
    let mut server = Process::start("gantry-server", &listen, home.path(), &[]);
    let url = loop {
        if let Some(url) = server.line().await.strip_prefix("listening on ") {
            break url.to_owned();
        }
    };
    let ready = async || {
        let answer = reqwest::get(format!("{url}/readyz")).await;
        let answer = answer.expect("it answers");
        (answer.status().as_u16(), answer.text().await.expect("text"))
    };
    assert_eq!(ready().await, (200, "ok\n".to_owned()));
    let filler = home.path().join("filler");
    fill(&filler, 56 * MIB);
    let (status, why) = ready().await;
    assert_eq!(status, 503, "{why}");
    assert!(why.contains("less than 16 MiB free"), "{why}");
    fs::remove_file(filler).expect("it is there");
    assert_eq!(ready().await, (200, "ok\n".to_owned()));
    server.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_while_the_disk_is_full_is_whole_once_there_is_room() {
    let mut gantry = Gantry::practice().await;
    gantry.stop_server().await;
    let aside = tempfile::tempdir().expect("a folder");
    copy(&gantry.home(), aside.path());
    let _disk = Disk::mount(&gantry.home(), 64 * 1024 * 1024);
    copy(aside.path(), &gantry.home());
    gantry.start_server().await;
    let runner = gantry.runner("laptop").await;
    let script = "echo a; until [ -e go ]; do sleep 0.02; done; echo b";
    let started = gantry
        .cli(&["exec", "-d", "-r", "laptop", "--", "sh", "-c", script])
        .await;
    let id = String::from_utf8(started.stdout).expect("text");
    let output = async || gantry.cli(&["output", id.trim()]).await.stdout;
    eventually("it runs", async || (output().await == b"a\n").then_some(())).await;
    let filler = gantry.home().join("filler");
    fill(&filler, u64::MAX);
    let refused = gantry.cli(&["chat", "hello"]).await;
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(words.contains("less than 16 MiB free"), "{words}");
    fs::write(runner.workspace().join("go"), "").expect("it is written");
    eventually("its end cannot be stored", async || {
        let waits = "the store does not answer; it is asked until it does";
        gantry.log().contains(waits).then_some(())
    })
    .await;
    fs::remove_file(filler).expect("it is there");
    // Only rows are read: nobody attaches, which would have it collected as well.
    eventually("its end is known", async || {
        let known = gantry.client().operations(true, 1).await.ok()?;
        known.first()?.end.clone()
    })
    .await;
    eventually("its output is whole", async || {
        (output().await == b"a\nb\n").then_some(())
    })
    .await;
}

fn copy(folder: &Path, into: &Path) {
    let copied = std::process::Command::new("cp")
        .args(["-a", "--"])
        .args([folder.join("."), into.to_owned()])
        .status();
    assert!(copied.expect("cp starts").success());
}

/// Writes until the disk has room for nothing more, or this much.
fn fill(file: &Path, bytes: u64) {
    let mut zeros = std::io::Read::take(std::io::repeat(0), bytes);
    let mut file = fs::File::create(file).expect("it is made");
    // It may be full before.
    let _ = std::io::copy(&mut zeros, &mut file);
}
