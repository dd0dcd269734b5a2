//! A web server of others in front of a server: Debian's nginx or Caddy, with the file of `deploy/` for it.

use std::{net::TcpListener, path::Path, process::Stdio};

use shared_tls::ServerTls;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::gantry::is_root;

/// The example for nginx.
pub const NGINX: &str = include_str!("../../deploy/nginx/gantry.conf");

/// The example for Caddy.
pub const CADDY: &str = include_str!("../../deploy/caddy/Caddyfile");

/// How often another port is tried where somebody else took the one that was free.
const PORTS_TRIED: usize = 8;

/// Which program stands in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// nginx.
    Nginx,
    /// Caddy.
    Caddy,
}

/// The program, until it is dropped.
pub struct Front {
    url: String,
    folder: TempDir,
    _process: Child,
}

impl Front {
    /// Starts it in front of the server at this address, on a free port of loopback, with a certificate of its own.
    /// Ports and paths are all that is changed in the example.
    ///
    /// # Panics
    /// If it is not there, or does not start with its example.
    pub async fn before(url: &str, kind: Kind) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        ServerTls::self_signed(folder.path(), &["localhost".to_owned()]).expect("a certificate");
        let server = url.strip_prefix("http://").expect("a server without TLS");
        for _ in 0..PORTS_TRIED {
            let free = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
            let port = free.local_addr().expect("it is bound").port();
            drop(free);
            let mut process = match kind {
                Kind::Nginx => nginx(folder.path(), port, server),
                Kind::Caddy => caddy(folder.path(), port, server),
            };
            let listens = match kind {
                Kind::Nginx => "getrlimit",
                Kind::Caddy => "serving initial configuration",
            };
            match said(&mut process, listens).await {
                Ok(()) => {
                    let url = format!("https://localhost:{port}");
                    return Self {
                        url,
                        folder,
                        _process: process,
                    };
                }
                Err(log) if log.contains("ddress already in use") => {}
                Err(log) => panic!("{kind:?} does not start with its example:\n{log}"),
            }
        }
        panic!("no port stayed free");
    }

    /// Where clients reach the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What a program's environment needs to trust its certificate, as it would trust an authority's.
    pub fn trust(&self) -> String {
        format!(
            "SSL_CERT_FILE={}/certificate.pem",
            self.folder.path().display()
        )
    }
}

/// Reads its log until it says this; all of it where it ends before.
async fn said(process: &mut Child, words: &str) -> Result<(), String> {
    let stderr = process.stderr.take().expect("it is piped");
    let mut lines = BufReader::new(stderr).lines();
    let mut log = String::new();
    while let Ok(Some(line)) = lines.next_line().await {
        if line.contains(words) {
            // It must not end because nobody reads on.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok(());
        }
        log += &line;
        log.push('\n');
    }
    Err(log)
}

/// The example with other places in it; each must have been there.
fn changed(example: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(example.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "the example has no {from:?} any more");
        text.replace(from, to)
    })
}

fn files(folder: &Path) -> (String, String) {
    let at = |name: &str| folder.join(name).display().to_string();
    (at("certificate.pem"), at("certificate.key"))
}

fn nginx(folder: &Path, port: u16, server: &str) -> Child {
    let (certificate, key) = files(folder);
    let listen = format!("listen 127.0.0.1:{port} ");
    let site = changed(
        NGINX,
        &[
            ("listen 443 ", &listen),
            ("127.0.0.1:7000", server),
            ("/etc/gantry/chain.pem", &certificate),
            ("/etc/gantry/key.pem", &key),
        ],
    );
    std::fs::write(folder.join("gantry.conf"), site).expect("it can be written");
    // Workers of another user could not reach a folder that is ours alone.
    let user = if is_root() { "user root;" } else { "" };
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {}/{name};", folder.display()))
        .concat();
    // One process, so that none is left behind by a test that is killed.
    let main = format!(
        "daemon off; master_process off; {user} pid {folder}/pid; error_log stderr notice; events {{}}\n\
         http {{ access_log off; {temporary} include {folder}/gantry.conf; }}\n",
        folder = folder.display()
    );
    std::fs::write(folder.join("nginx.conf"), main).expect("it can be written");
    let mut nginx = Command::new("nginx");
    nginx
        .arg("-e")
        .arg("stderr")
        .arg("-c")
        .arg(folder.join("nginx.conf"));
    started(nginx, folder)
}

fn caddy(folder: &Path, port: u16, server: &str) -> Child {
    let (certificate, key) = files(folder);
    let site = format!("https://localhost:{port} {{");
    let site = changed(
        CADDY,
        &[
            ("gantry.example.com {", &site),
            ("# tls /etc/gantry/chain.pem", "tls /etc/gantry/chain.pem"),
            ("127.0.0.1:7000", server),
            ("/etc/gantry/chain.pem", &certificate),
            ("/etc/gantry/key.pem", &key),
        ],
    );
    // What a machine has once, and a test may not take.
    let main = "{\n\tadmin off\n\tauto_https disable_redirects\n\tservers {\n\t\tprotocols h1 h2\n\t}\n}\n";
    std::fs::write(folder.join("Caddyfile"), format!("{main}{site}")).expect("it can be written");
    let mut caddy = Command::new("caddy");
    caddy
        .args(["run", "--adapter", "caddyfile", "--config"])
        .arg(folder.join("Caddyfile"));
    started(caddy, folder)
}

fn started(mut command: Command, folder: &Path) -> Child {
    let path = std::env::join_paths([
        "/usr/local/sbin",
        "/usr/local/bin",
        "/usr/sbin",
        "/usr/bin",
        "/sbin",
        "/bin",
    ]);
    command
        .env_clear()
        .env("PATH", path.expect("folders"))
        .env("HOME", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("nginx and caddy are installed: run `make test`, which does that")
}
