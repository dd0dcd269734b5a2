//! The peer that everybody has: OpenSSH from the distribution, on loopback, with a host key and a
//! user key of its own in a temporary folder, and the cheapest cipher that it offers here
//! (aes128-gcm). Its clients are programs, as on a command line.

use std::{
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;
use tests::gantry::eventually;

use crate::local;

const SERVER: &str = "/usr/sbin/sshd";
const CIPHER: &str = "aes128-gcm@openssh.com";

/// A running `sshd`, with a master connection to it.
pub(crate) struct Ssh {
    folder: TempDir,
    port: u16,
    server: Child,
}

impl Ssh {
    /// Starts it; `None` where OpenSSH's server is not installed.
    pub(crate) async fn start() -> Option<Self> {
        if !Path::new(SERVER).exists() {
            eprintln!("the lines against ssh are left out: {SERVER} is not installed");
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let port = free_port();
        for key in ["host", "user"] {
            done(
                Command::new("ssh-keygen")
                    .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                    .arg(folder.path().join(key)),
            );
        }
        let settings = folder.path().join("sshd_config");
        std::fs::write(&settings, sshd_config(folder.path(), port)).expect("it can be written");
        // It separates privileges in this folder, and does not start without it.
        let _ = std::fs::create_dir_all("/run/sshd");
        let server = Command::new(SERVER)
            .args(["-D", "-e", "-f"])
            .arg(&settings)
            .stderr(std::fs::File::create(folder.path().join("log")).expect("a log"))
            .spawn()
            .expect("sshd starts");
        let ssh = Self {
            folder,
            port,
            server,
        };
        let listens = || async { std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok() };
        eventually("sshd listens", listens).await;
        done(ssh.client(true).args(["-M", "-N", "-f"]).arg("127.0.0.1"));
        Some(ssh)
    }

    /// Runs a command over the kept master connection, or (`false`) over a fresh one, and returns
    /// the bytes of its output.
    pub(crate) fn run(&self, kept: bool, words: &[&str]) -> u64 {
        let mut client = self.client(kept);
        let output = client.arg("127.0.0.1").args(words).output();
        let output = output.expect("ssh starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ssh: {said}");
        output.stdout.len() as u64
    }

    /// The same over the kept master connection for output that is too much to keep.
    pub(crate) fn drain(&self, words: &[&str]) -> u64 {
        let mut client = self.client(true);
        local::drained(client.arg("127.0.0.1").args(words))
    }

    /// What starts a login shell in a terminal over the kept master connection.
    pub(crate) fn shell(&self) -> Command {
        let mut client = Command::new("ssh");
        client.args(["-tt", "-x"]);
        self.connect_by(&mut client, true);
        client.arg("127.0.0.1");
        client
    }

    /// Copies a file from here to "there", over the kept master connection.
    pub(crate) fn upload(&self, from: &Path, to: &Path) {
        done(self.copier().arg(from).arg(remote(to)));
    }

    /// Copies a file from "there" to here, over the kept master connection.
    pub(crate) fn download(&self, from: &Path, to: &Path) {
        done(self.copier().arg(remote(from)).arg(to));
    }

    fn client(&self, kept: bool) -> Command {
        let mut client = Command::new("ssh");
        client.args(["-T", "-x"]).stdin(Stdio::null());
        self.connect_by(&mut client, kept);
        client
    }

    fn copier(&self) -> Command {
        let mut copier = Command::new("scp");
        copier.arg("-q").stdin(Stdio::null());
        self.connect_by(&mut copier, true);
        copier
    }

    /// What both clients are told of the connection.
    fn connect_by(&self, client: &mut Command, kept: bool) {
        let socket = if kept {
            self.path("master")
        } else {
            "none".into()
        };
        client.args(["-F", "none", "-c", CIPHER]);
        for option in [
            &format!("Port={}", self.port),
            &format!("ControlPath={}", socket.display()),
            "BatchMode=yes",
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
        ] {
            client.args(["-o", option]);
        }
        client.arg("-i").arg(self.path("user"));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        let mut exit = self.client(true);
        let exit = exit.args(["-O", "exit", "127.0.0.1"]).stderr(Stdio::null());
        let _ = exit.status();
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// With an empty home, because the user's shell would read its settings for every command.
fn sshd_config(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    format!(
        "ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nPidFile none\n\
         AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nUsePAM no\nUseDNS no\n\
         PasswordAuthentication no\nPermitRootLogin prohibit-password\nCiphers {CIPHER}\n\
         SetEnv HOME={folder}\nSubsystem sftp internal-sftp\nLogLevel ERROR\n"
    )
}

/// A file of the other side, as `scp` is told of it.
fn remote(path: &Path) -> String {
    format!("127.0.0.1:{}", path.display())
}

/// A port that was free a moment ago: sshd takes no socket that is open already.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("it is bound").port()
}

fn done(command: &mut Command) {
    let status = command.status();
    assert!(status.expect("it starts").success(), "{command:?} succeeds");
}
