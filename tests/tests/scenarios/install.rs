//! A workstation without Gantry becomes a runner by one pasted line, is updated, and gets rid of it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;
use tests::{
    gantry::{Gantry, Setup, eventually},
    workstation::{Workstation, make_archive},
};
use tokio::io::AsyncWriteExt as _;

/// Where the runner works on the workstation.
const PROJECT: &str = "/srv";

#[tokio::test(flavor = "multi_thread")]
async fn one_pasted_line_makes_a_bare_machine_a_runner_and_uninstall_leaves_only_its_home() {
    let office = Office::with_tls().await;
    let laptop = Workstation::bare().await;
    let before = laptop.files();

    let line = office.line("laptop").await;
    let [token] = tokens(&line)[..] else {
        panic!("one token: {line}");
    };
    let said = succeeded(&laptop.types(PROJECT, &line).await);
    assert!(said.contains("enrolled as laptop with https://"), "{said}");
    assert!(said.contains("; connected to https://"), "{said}");
    assert!(said.contains("does not start by itself"), "{said}");
    assert!(!said.contains(token), "{said}");

    // A second time nothing happens, and it is no failure: provisioning repeats itself.
    let key = laptop.root().join("root/.gantry/runner/identity.key");
    let before_it = (laptop.files(), fs::read(&key).expect("a key"));
    let said = succeeded(&laptop.types(PROJECT, &line).await);
    let is = "this machine is the runner laptop of https://";
    assert!(said.contains(is) && !said.contains("enrolled as"), "{said}");
    assert_eq!((laptop.files(), fs::read(&key).expect("a key")), before_it);

    let ran = office.cli(&[
        "exec",
        "-r",
        "laptop",
        "--",
        "sh",
        "-c",
        "pwd; cat /etc/debian_version",
    ]);
    let said = succeeded(&ran.await);
    assert!(said.starts_with("/srv\n12."), "{said}");
    let status = succeeded(&laptop.types("/", "gantry-runner status").await);
    assert!(status.contains("running; linked to https://"), "{status}");
    let log = succeeded(&laptop.types("/", "gantry-runner logs").await);
    assert!(
        log.contains("runner connected") && !log.contains(token),
        "{log}"
    );

    let other = Office::in_plain_text().await;
    let refused = laptop.types(PROJECT, &other.line("laptop").await).await;
    assert!(!refused.status.success(), "{refused:?}");
    assert!(text(&refused.stderr).contains(is), "{refused:?}");
    let gone = other.line("laptop").await;
    drop(other);
    let failed = laptop.types(PROJECT, &gone).await;
    assert_eq!(failed.status.code(), Some(7), "curl's: {failed:?}");
    let left = succeeded(&laptop.types("/", "ls -d /tmp/tmp.*; true").await);
    assert_eq!(left, "", "each line takes away what it loaded");

    let asks = laptop.types("/", "gantry-runner uninstall").await;
    assert!(text(&asks.stderr).contains("give --yes"), "{asks:?}");
    succeeded(&laptop.types("/", "gantry-runner uninstall --yes").await);
    office.gantry.until_online("laptop", false).await;
    assert_eq!(laptop.files(), before);
    assert!(key.exists());
    // The daemon has let go of its folder; its last moment may come after that.
    eventually("no process of ours is left", || async {
        let left = succeeded(&laptop.types("/", "cat /proc/[0-9]*/comm; true").await);
        (!left.contains("gantry")).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_archive_that_was_tampered_with_nothing_runs_at_the_first_time_or_at_an_update() {
    let mut office = Office::with_tls().await;
    let (laptop, desktop) = (Workstation::bare().await, Workstation::bare().await);
    succeeded(&desktop.types(PROJECT, &office.line("desktop").await).await);

    let line = office.line("laptop").await;
    office.tamper();
    let refused = laptop.types(PROJECT, &line).await;
    assert!(text(&refused.stdout).contains(": FAILED"), "{refused:?}");
    assert!(!refused.status.success(), "{refused:?}");
    let harm = laptop.root().join("harm");
    assert!(!harm.exists());
    assert!(!laptop.root().join("root/.gantry").exists());
    // It would have done harm: only the checksum kept it from that.
    let check = line.split(" && ").find(|step| step.contains("sha256sum"));
    let unchecked = line.replace(&format!(" && {}", check.expect("a check")), "");
    laptop.types(PROJECT, &unchecked).await;
    assert!(harm.exists());

    // The server has signed another archive than the one that comes.
    let forget = "rm -f /opt/gantry/current/archive.sha256";
    let refused = desktop
        .types("/", &format!("{forget}; gantry-runner update"))
        .await;
    let said = text(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("not the archive that it signed"),
        "{said}"
    );
    assert!(!desktop.root().join("harm").exists());
    succeeded(&desktop.types("/", "gantry-runner status").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_to_a_version_that_does_not_run_goes_back_to_the_one_before() {
    let mut office = Office::in_plain_text().await;
    let laptop = Workstation::bare().await;
    succeeded(&laptop.types(PROJECT, &office.line("laptop").await).await);
    let first = installed(&laptop);
    office
        .hand_out(|path| {
            let broken = "#!/bin/sh\n[ $1 = --version ] && echo gantry-runner 9.9.9\n";
            fs::write(path, broken).expect("it is written");
        })
        .await;
    let refused = laptop.types("/", "gantry-runner update").await;
    let said = text(&refused.stderr);
    assert!(!refused.status.success(), "{said}");
    assert!(
        said.contains("does not run") && said.contains("; went back to "),
        "{said}"
    );
    assert_eq!(installed(&laptop), first);
    office.gantry.until_online("laptop", true).await;
    succeeded(&office.cli(&["exec", "-r", "laptop", "--", "true"]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_leaves_a_running_command_alone_and_its_output_whole() {
    let mut office = Office::in_plain_text().await;
    let laptop = Workstation::bare().await;
    succeeded(&laptop.types(PROJECT, &office.line("laptop").await).await);
    let first = installed(&laptop);

    let script = "for i in $(seq 1 1000); do echo line $i; echo $i >>effects; [ -e /srv/stop ] && break; sleep 0.05; done; echo the end";
    let command = office.cli(&["exec", "-r", "laptop", "--", "sh", "-c", script]);
    let command = tokio::spawn(command);
    let effects = laptop.root().join("srv/effects");
    eventually("the command runs", || async {
        effects.exists().then_some(())
    })
    .await;

    office.next_version().await;
    office.gantry.until_online("laptop", true).await;
    let said = succeeded(&laptop.types("/", "gantry-runner update").await);
    assert!(
        said.contains("what runs goes on; connected to http://"),
        "{said}"
    );
    assert_ne!(installed(&laptop), first);
    let daemons = "readlink /proc/[0-9]*/exe | grep gantry-runner";
    let daemon = succeeded(&laptop.types("/", daemons).await);
    assert_eq!(
        Path::new(daemon.trim()).parent(),
        Some(installed(&laptop).as_path())
    );
    let said = succeeded(&laptop.types("/", "gantry-runner update").await);
    assert!(said.starts_with("already current: "), "{said}");

    // An update that was interrupted before it started the daemon anew.
    let current = installed(&laptop);
    let select = |version: &Path| format!("ln -sfn {} /opt/gantry/current", version.display());
    let interrupted = format!(
        "{} && gantry-runner install && {}",
        select(&first),
        select(&current)
    );
    succeeded(&laptop.types("/", &interrupted).await);
    let said = succeeded(&laptop.types("/", "gantry-runner update").await);
    assert!(said.contains("the daemon was started anew"), "{said}");
    let daemon = succeeded(&laptop.types("/", daemons).await);
    assert_eq!(Path::new(daemon.trim()).parent(), Some(current.as_path()));

    fs::write(laptop.root().join("srv/stop"), "").expect("a file");
    let said = succeeded(&command.await.expect("it ends"));
    let lines: Vec<_> = said.lines().collect();
    let effects = fs::read_to_string(effects).expect("it is there");
    assert_eq!(lines.len() - 1, effects.lines().count(), "each line once");
    for (number, line) in lines[..lines.len() - 1].iter().enumerate() {
        assert_eq!(*line, format!("line {}", number + 1));
    }
    assert_eq!(lines.last(), Some(&"the end"));
}

/// A server that hands out programs, and a person who is signed in.
struct Office {
    gantry: Gantry,
    downloads: TempDir,
    archive: PathBuf,
    /// Of the terminal.
    home: TempDir,
}

impl Office {
    async fn with_tls() -> Self {
        Self::new(true).await
    }

    async fn in_plain_text() -> Self {
        Self::new(false).await
    }

    async fn new(tls: bool) -> Self {
        let downloads = tempfile::tempdir().expect("a folder");
        let archive = make_archive(downloads.path()).await;
        let settings = format!("[server]\ndownloads = {:?}\n", downloads.path());
        let gantry = Gantry::with(Setup {
            tls,
            settings,
            ..Setup::default()
        })
        .await;
        let home = tempfile::tempdir().expect("a home");
        let office = Self {
            gantry,
            downloads,
            archive,
            home,
        };
        office.sign_in().await;
        office
    }

    /// A terminal that trusts the server's own certificate is signed in by its fingerprint.
    async fn sign_in(&self) {
        let code = self.gantry.sign_in_code().await;
        let mut words = vec![
            "login".to_owned(),
            "--server".to_owned(),
            self.gantry.url().to_owned(),
        ];
        if let shared_client::Trust::Pinned(digest) = self.gantry.trust() {
            let digest = shared_types::Digest::from(*digest).to_string();
            words.extend(["--fingerprint".to_owned(), digest]);
        }
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let mut login = self
            .terminal(&words)
            .stdin(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stdin = login.stdin.take().expect("stdin is piped");
        stdin.write_all(code.as_bytes()).await.expect("it reads");
        drop(stdin);
        assert!(login.wait().await.expect("it ends").success());
    }

    fn terminal(&self, words: &[&str]) -> tokio::process::Command {
        let mut terminal = self.gantry.terminal(words);
        terminal
            .env_remove("GANTRY_SERVER")
            .env_remove("GANTRY_TOKEN")
            .env("GANTRY_HOME", self.home.path());
        terminal
    }

    fn cli(&self, words: &[&str]) -> impl Future<Output = Output> + Send + 'static {
        let mut terminal = self.terminal(words);
        async move { terminal.output().await.expect("it starts") }
    }

    /// The line that is to be pasted on a machine of this name.
    async fn line(&self, name: &str) -> String {
        let said = succeeded(&self.cli(&["runners", "add", name]).await);
        let line = said.lines().find(|line| line.contains("sha256sum"));
        line.expect("there is a line").to_owned()
    }

    /// Puts other programs into the archive that the server has open, which do harm.
    fn tamper(&mut self) {
        let harm = "#!/bin/sh\necho 0.0.0 0.0.0\ntouch /harm\n";
        let length = fs::metadata(&self.archive).expect("it is there").len();
        let changed = self.repack(|path| fs::write(path, harm).expect("it is written"));
        let mut bytes = fs::read(changed).expect("it is there");
        // gzip ignores zeros at the end.
        bytes.resize(usize::try_from(length).expect("it fits"), 0);
        fs::write(&self.archive, bytes).expect("it is written over");
    }

    /// From its next start on the server has other programs, which do the same.
    async fn next_version(&mut self) {
        self.hand_out(|path| {
            let mut program = fs::read(path).expect("it is there");
            program.push(0);
            fs::write(path, program).expect("it is written");
        })
        .await;
    }

    /// From its next start on the server has a `gantry-runner` that was changed.
    async fn hand_out(&mut self, change: impl Fn(&Path)) {
        let changed = self.repack(change);
        fs::rename(changed, &self.archive).expect("it takes its place");
        self.gantry.stop_server().await;
        self.gantry.start_server().await;
    }

    /// Another archive, in which `gantry-runner` was changed.
    fn repack(&self, change: impl Fn(&Path)) -> PathBuf {
        let folder = self.downloads.path().join("changed");
        fs::create_dir(&folder).expect("a folder");
        let tar = |words: &[&str], archive: &Path| {
            let mut tar = Command::new("tar");
            let done = tar.arg("--directory").arg(&folder).args(words).arg(archive);
            assert!(
                done.arg("gantry-runner")
                    .env("GZIP", "-1")
                    .status()
                    .expect("tar starts")
                    .success()
            );
        };
        tar(&["--extract", "--gzip", "--file"], &self.archive);
        change(&folder.join("gantry-runner/gantry-runner"));
        let changed = self.downloads.path().join("changed.tar.gz");
        tar(&["--create", "--gzip", "--file"], &changed);
        changed
    }
}

/// The folder of the version that counts on a workstation.
fn installed(workstation: &Workstation) -> PathBuf {
    let gantry = Path::new("/opt/gantry");
    let link = workstation.root().join("opt/gantry/current");
    gantry.join(fs::read_link(link).expect("a version counts"))
}

fn tokens(line: &str) -> Vec<&str> {
    line.split(' ')
        .filter(|word| word.starts_with("gantry_join_"))
        .collect()
}

fn succeeded(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
