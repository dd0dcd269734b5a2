//! Gantry as a person runs it: the real binaries as processes, on port 0, in a temporary home.
//!
//! Nothing here sleeps to wait: [`eventually`] asks until it is so. A process that is dropped is
//! killed, and what it logged is printed where a wait was in vain.

mod ask;
mod process;
mod rolling;
mod runner;
mod screen;
mod setup;
mod talk;
mod tenant;

use std::{path::PathBuf, sync::Arc, time::Duration};

use shared_client::{Client, Options, PING_EVERY, Trust};
use shared_types::OsEntropy;
use tempfile::TempDir;

pub use ask::Answer;
pub use process::{
    Process, binary, children_of, descriptors_of, is_alive, is_root, parent_of, processes_marked,
    zombies_of,
};
pub use runner::{Disk, Runner, TO_BE_ENROLLED};
pub use screen::Screen;
use setup::DATABASE_URL;
pub use setup::Setup;
pub use talk::{Talk, Told};

use crate::model_server::ModelServer;

/// How long anything may take before a test says that it does not happen. Far above what is
/// needed, because it is reached only by a failure.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A server, with the owner signed in.
pub struct Gantry {
    home: TempDir,
    environment: Vec<(String, String)>,
    arguments: Vec<String>,
    server: Option<Process>,
    url: String,
    trust: Trust,
    token: String,
    http: reqwest::Client,
}

impl Gantry {
    /// A server whose model is the practice model.
    pub async fn practice() -> Self {
        Self::with(Setup::default()).await
    }

    /// A server whose model is the test's own.
    pub async fn scripted(model: &ModelServer) -> Self {
        Self::with_model(model.base_url()).await
    }

    /// A server whose model answers at this address, in OpenAI's format.
    pub async fn with_model(base_url: String) -> Self {
        Self::with(Setup {
            model: Some(base_url),
            ..Setup::default()
        })
        .await
    }

    /// A server that ends TLS with a certificate of its own.
    pub async fn with_tls() -> Self {
        Self::with(Setup {
            tls: true,
            ..Setup::default()
        })
        .await
    }

    /// A server that is set up like this.
    pub async fn with(setup: Setup) -> Self {
        let home = tempfile::tempdir().expect("a temporary folder");
        if !setup.settings.is_empty() {
            std::fs::write(home.path().join("gantry.toml"), &setup.settings)
                .expect("settings can be written");
        }
        let mut gantry = Self {
            home,
            environment: setup.environment(),
            arguments: setup.arguments(),
            server: None,
            url: setup.listen,
            trust: Trust::Platform,
            token: String::new(),
            http: reqwest::Client::new(),
        };
        let code = gantry
            .start_server()
            .await
            .expect("the first start prints a sign-in code");
        let signed_in = gantry
            .client_with(None)
            .sign_in(&code, "test")
            .await
            .expect("the code signs in");
        gantry.token = signed_in.token;
        gantry
    }

    /// Starts the server on the address that it had before. Returns the sign-in code that it prints.
    pub async fn start_server(&mut self) -> Option<String> {
        assert!(self.server.is_none(), "the server runs already");
        let listen = self.url.rsplit("://").next().unwrap_or_default().to_owned();
        let mut arguments = vec!["run".to_owned(), "--listen".to_owned(), listen];
        arguments.extend(self.arguments.clone());
        let mut server = Process::start(
            "gantry-server",
            &arguments,
            self.home.path(),
            &self.environment,
        );
        let mut code = None;
        loop {
            let line = server.line().await;
            if let Some(printed) = line.strip_prefix("sign-in code: ") {
                code = Some(printed.to_owned());
            } else if let Some(fingerprint) = line.strip_prefix("certificate: ") {
                let digest =
                    shared_types::Digest::from_hex(fingerprint).expect("a SHA-256 in hexadecimal");
                self.trust = Trust::Pinned(*digest.as_bytes());
            } else if let Some(url) = line.strip_prefix("listening on ") {
                self.url = url.to_owned();
                break;
            }
        }
        self.server = Some(server);
        code
    }

    /// Starts the server where it was killed.
    pub async fn start_server_if_dead(&mut self) {
        if self.server.is_none() {
            self.start_server().await;
        }
    }

    /// Kills the server with SIGKILL.
    pub async fn kill_server(&mut self) {
        self.server.take().expect("the server runs").kill().await;
    }

    /// Asks the server to stop with SIGTERM and returns its exit code.
    pub async fn stop_server(&mut self) -> Option<i32> {
        self.server
            .take()
            .expect("the server runs")
            .terminate()
            .await
    }

    /// Sends a signal to the server.
    pub fn signal_server(&self, name: &str) {
        process::signal(self.server_pid(), name);
    }

    /// The server's process id.
    pub fn server_pid(&self) -> u32 {
        self.server.as_ref().expect("the server runs").pid()
    }

    /// Where the server can be reached.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The folder of all state.
    pub fn home(&self) -> PathBuf {
        self.home.path().to_owned()
    }

    /// How the server's certificate is known.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// From now on its clients accept another certificate of the server's.
    pub fn trusts(&mut self, trust: Trust) {
        self.trust = trust;
    }

    /// The owner's token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        process::log_of("gantry-server", self.home.path())
    }

    /// A new one-time code for the owner, as an operator at the server's machine gets it.
    pub async fn sign_in_code(&self) -> String {
        let mut operator = self.operator(&["sign-in-code"]);
        let printed = operator.output().await.expect("it starts");
        let printed = String::from_utf8(printed.stdout).expect("text");
        printed.trim().to_owned()
    }

    /// What starts a verb of the server's program, as an operator does at the server's machine.
    pub fn operator(&self, arguments: &[&str]) -> tokio::process::Command {
        let mut operator = tokio::process::Command::new(binary("gantry-server"));
        operator
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .env("GANTRY_HOME", self.home.path())
            .kill_on_drop(true);
        operator
    }

    /// The URL of the server's database, unless that is a file in its home.
    pub fn database_url(&self) -> Option<&str> {
        let named = self
            .environment
            .iter()
            .find(|(name, _)| name == DATABASE_URL);
        named
            .map(|(_, url)| url.as_str())
            .filter(|url| !url.is_empty())
    }

    /// From its next start on the server uses this database.
    pub fn use_database(&mut self, url: &str) {
        self.environment.retain(|(name, _)| name != DATABASE_URL);
        self.environment
            .push((DATABASE_URL.to_owned(), url.to_owned()));
    }

    /// The API, as the owner.
    pub fn client(&self) -> Client {
        self.client_with(Some(self.token.clone()))
    }

    /// The API, with another credential or none.
    pub fn client_with(&self, token: Option<String>) -> Client {
        self.client_by_way_of(&self.url, token, PING_EVERY)
    }

    /// The same, for a client that reaches the server at another address, and asks it so often
    /// whether it lives.
    fn client_by_way_of(&self, url: &str, token: Option<String>, ping_every: Duration) -> Client {
        Client::new(Options {
            server: url.parse().expect("an address"),
            token,
            trust: self.trust.clone(),
            plain_text_allowed: false,
            ping_every,
            entropy: Arc::new(OsEntropy),
        })
        .expect("the options are fine")
    }

    /// Enrols a runner with a token of its own and waits until it is connected.
    pub async fn runner(&self, name: &str) -> Runner {
        self.runner_by_way_of(&self.url, name).await
    }

    /// The same, for a runner that reaches the server at another address than we do.
    pub async fn runner_by_way_of(&self, url: &str, name: &str) -> Runner {
        let token = self.join_token(name).await;
        let mut runner = Runner::enrol(url, &token, name).await;
        runner.start();
        self.until_online(name, true).await;
        runner
    }

    /// A token with which one runner of this name can enrol.
    pub async fn join_token(&self, name: &str) -> String {
        let wish = shared_api::CreateJoinToken::one(name);
        let token = self.client().create_join_token(&wish).await;
        token.expect("a join token").token
    }

    /// Waits until the server holds the runner for online, or for offline.
    pub async fn until_online(&self, name: &str, online: bool) {
        let client = self.client();
        eventually(
            &format!(
                "runner {name} is {}",
                if online { "online" } else { "offline" }
            ),
            || async {
                let runners = client.runners().await.ok()?;
                runners
                    .iter()
                    .any(|runner| runner.name == name && runner.online == online)
                    .then_some(())
            },
        )
        .await;
    }

    /// Runs the terminal client as the owner and waits for its end.
    pub async fn cli(&self, arguments: &[&str]) -> std::process::Output {
        let output = self.terminal(arguments).output().await;
        output.expect("the terminal client starts")
    }

    /// What starts the terminal client as the owner, with nothing to read.
    pub fn terminal(&self, arguments: &[&str]) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(binary("gantry"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", process::path())
            .env("GANTRY_HOME", self.home.path())
            .env("GANTRY_SERVER", &self.url)
            .env("GANTRY_TOKEN", &self.token)
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// The same, for one that reaches the server at another address.
    pub fn terminal_by_way_of(&self, url: &str, arguments: &[&str]) -> tokio::process::Command {
        let mut command = self.terminal(arguments);
        command.env("GANTRY_SERVER", url);
        command
    }

    /// Invites a person, who signs in; returns the person's token.
    pub async fn person(&self, name: &str, role: shared_api::RoleName) -> String {
        let invited = self.client().invite(name, role).await;
        let code = invited.expect("the owner invites").code;
        let signed_in = self.client_with(None).sign_in(&code, "test").await;
        signed_in.expect("the code signs in").token
    }

    /// A key of the owner's with these scopes.
    pub async fn key(
        &self,
        name: &str,
        scopes: &[shared_api::ScopeName],
    ) -> shared_api::CreatedKey {
        let terms = shared_api::CreateKey {
            name: name.to_owned(),
            scopes: Some(scopes.to_vec()),
            valid_for_s: None,
            from: None,
        };
        let made = self.client().create_key_with(&terms).await;
        made.expect("a key")
    }

    /// A new conversation as whoever has this token.
    pub async fn talk_as(&self, token: &str) -> Talk {
        Talk::begin(self.client_with(Some(token.to_owned()))).await
    }

    /// A new conversation as the owner.
    pub async fn talk(&self) -> Talk {
        Talk::begin(self.client()).await
    }

    /// The same, for a client that reaches the server at another address, and asks it so often
    /// whether it lives.
    pub async fn talk_by_way_of(&self, url: &str, ping_every: Duration) -> Talk {
        let token = Some(self.token.clone());
        Talk::begin(self.client_by_way_of(url, token, ping_every)).await
    }
}

impl Drop for Gantry {
    fn drop(&mut self) {
        process::tell_in_a_panic("gantry-server", &self.log());
    }
}

/// Asks until there is an answer.
///
/// # Panics
/// If there is none within [`PATIENCE`].
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut ask: impl FnMut() -> F,
) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    match tokio::time::timeout(PATIENCE, asking).await {
        Ok(answer) => answer,
        Err(_) => panic!("it did not happen within {PATIENCE:?}: {what}"),
    }
}
