//! What an operator can set: flags and environment over `gantry.toml` over defaults.
//!
//! This is the one place of the server that reads the environment. A key that the
//! file has and this does not know is an error, never silently without effect.

mod connections;
mod link;
mod runners;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, anyhow, bail};
use clap::{Args, Parser, Subcommand, builder::FalseyValueParser};
use serde::Deserialize;
use server_api::Limits;
use server_llm::ApiKey;
use server_router::links::LinkOptions;

use self::{connections::ConnectionsSection, link::LinkSection, runners::RunnersSection};

/// The server of Gantry, a control plane for AI agents whose hands are on your own machines.
#[derive(Parser)]
#[command(name = "gantry-server", version)]
pub(crate) struct Cli {
    /// Where all state lives [default: ~/.gantry].
    #[arg(long, env = "GANTRY_HOME", global = true)]
    home: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Serve until SIGTERM or Ctrl-C.
    Run(Box<RunArgs>),
    /// Print a new one-time code with which the owner can sign in.
    SignInCode,
    /// Print a token with which one runner, or a fleet of them, can enrol.
    JoinToken {
        /// The name that the runner will have; without it the runner says.
        #[arg(long, default_value = "")]
        name: String,
        /// How many seconds it can be used, from 1 to 2592000 (30 days).
        #[arg(long, value_name = "SECONDS", default_value = "600")]
        valid_for: u32,
        /// How many runners may enrol with it, from 1 to 1000.
        #[arg(long, value_name = "RUNNERS", default_value = "1")]
        uses: u32,
        /// Remove those runners when they leave for good, or stay away.
        #[arg(long)]
        ephemeral: bool,
    },
}

#[derive(Args, Default)]
pub(crate) struct RunArgs {
    /// The settings file [default: gantry.toml in the home folder, where there is one].
    #[arg(long, env = "GANTRY_CONFIG")]
    config: Option<PathBuf>,
    /// Address and port to listen on; port 0 takes a free one [default: 127.0.0.1:7000].
    #[arg(long, env = "GANTRY_LISTEN")]
    listen: Option<SocketAddr>,
    /// End TLS here, with a certificate of our own making that join tokens vouch for.
    #[arg(long, env = "GANTRY_TLS", value_parser = FalseyValueParser::new())]
    tls: bool,
    /// Speak plain text on an address that is not loopback, because something before us ends TLS.
    #[arg(long, env = "GANTRY_BEHIND_PROXY", value_parser = FalseyValueParser::new())]
    behind_proxy: bool,
    /// The model's name.
    #[arg(long, env = "GANTRY_MODEL")]
    model: Option<String>,
    /// The address of an OpenAI-compatible server.
    #[arg(long, env = "OPENAI_BASE_URL", hide_env_values = true)]
    base_url: Option<String>,
    /// What to log, such as `info` or `info,server_router=debug`.
    #[arg(long, env = "GANTRY_LOG")]
    log: Option<String>,
    /// `text` or `json`.
    #[arg(long, env = "GANTRY_LOG_FORMAT")]
    log_format: Option<String>,
}

/// What comes from the environment alone: a flag would show the key in the process list, and the rest
/// is for whoever starts programs to say.
#[derive(Default)]
pub(crate) struct Environment {
    user_home: Option<PathBuf>,
    openai_api_key: Option<String>,
    journal_stream: Option<String>,
}

impl Environment {
    /// The one place of the server that reads it; what has a flag as well is read by clap.
    #[expect(
        clippy::disallowed_methods,
        reason = "`main` reads the environment and passes it down"
    )]
    pub(crate) fn read() -> Self {
        Self {
            user_home: std::env::var_os("HOME").map(PathBuf::from),
            openai_api_key: std::env::var("OPENAI_API_KEY").ok(),
            journal_stream: std::env::var(shared_telemetry::JOURNAL_STREAM).ok(),
        }
    }
}

/// `gantry.toml`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    server: ServerSection,
    tls: TlsSection,
    connections: ConnectionsSection,
    link: LinkSection,
    runners: RunnersSection,
    model: ModelSection,
    log: LogSection,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ServerSection {
    listen: Option<SocketAddr>,
    behind_proxy: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TlsSection {
    self_signed: bool,
    names: Vec<String>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ModelSection {
    name: Option<String>,
    base_url: Option<String>,
    key_file: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LogSection {
    filter: Option<String>,
    format: Option<String>,
}

/// Everything that `run` was told, checked.
pub(crate) struct Settings {
    pub(crate) listen: SocketAddr,
    pub(crate) tls: Tls,
    pub(crate) limits: Limits,
    pub(crate) link: LinkOptions,
    /// After this long without a word an ephemeral runner is removed.
    pub(crate) ephemeral_silence: Duration,
    pub(crate) model: ModelChoice,
    pub(crate) log_filter: Option<String>,
    pub(crate) log_format: String,
    /// What leads to systemd's journal.
    pub(crate) journal_stream: Option<String>,
}

/// How the port is protected.
pub(crate) enum Tls {
    /// Plain text: loopback, or behind something that ends TLS.
    Off,
    /// Our own certificate, for these names.
    SelfSigned { names: Vec<String> },
    /// The operator's certificate.
    Files { certificate: PathBuf, key: PathBuf },
}

/// Who answers.
pub(crate) enum ModelChoice {
    /// No AI: for trying things out.
    Practice,
    /// Any server that speaks OpenAI's format.
    OpenAi {
        name: String,
        base_url: Option<String>,
        key: Option<ApiKey>,
    },
}

impl Cli {
    /// Where all state lives.
    pub(crate) fn home(&self, environment: &Environment) -> anyhow::Result<PathBuf> {
        match (&self.home, &environment.user_home) {
            (Some(home), _) => Ok(home.clone()),
            (None, Some(user)) => Ok(user.join(".gantry")),
            (None, None) => {
                bail!("neither GANTRY_HOME nor HOME is set: set GANTRY_HOME to a folder of yours")
            }
        }
    }
}

impl Settings {
    /// What the flags, the environment and the file say together.
    pub(crate) fn resolve(
        args: RunArgs,
        environment: Environment,
        home: &Path,
    ) -> anyhow::Result<Self> {
        let file = read_file(args.config.as_deref(), home)?;
        let listen = args
            .listen
            .or(file.server.listen)
            .unwrap_or(SocketAddr::from(([127, 0, 0, 1], 7000)));
        let tls = match (file.tls.certificate, file.tls.key) {
            (Some(certificate), Some(key)) => Tls::Files { certificate, key },
            (None, None) if args.tls || file.tls.self_signed => Tls::SelfSigned {
                names: names(file.tls.names, listen),
            },
            (None, None) => Tls::Off,
            _ => bail!("[tls] needs both certificate and key in gantry.toml"),
        };
        if matches!(tls, Tls::Off)
            && !listen.ip().is_loopback()
            && !args.behind_proxy
            && !file.server.behind_proxy
        {
            bail!(
                "{listen} can be reached from other machines and would speak plain text: add --tls, or --behind-proxy where something before the server ends TLS"
            );
        }
        let key = match (environment.openai_api_key, file.model.key_file) {
            (Some(key), _) => ApiKey::new(&key),
            (None, Some(path)) => {
                let text = std::fs::read_to_string(&path).with_context(|| {
                    format!("the model's key file {} cannot be read", path.display())
                })?;
                Some(ApiKey::new(&text).with_context(|| {
                    format!("the model's key file {} holds no key", path.display())
                })?)
            }
            (None, None) => None,
        };
        let model = choose_model(
            args.model.or(file.model.name),
            args.base_url.or(file.model.base_url),
            key,
        )?;
        Ok(Self {
            listen,
            tls,
            limits: file.connections.limits()?,
            link: file.link.options()?,
            ephemeral_silence: file.runners.ephemeral_silence()?,
            model,
            journal_stream: environment.journal_stream,
            log_filter: args.log.or(file.log.filter),
            log_format: args
                .log_format
                .or(file.log.format)
                .unwrap_or_else(|| "text".to_owned()),
        })
    }
}

fn choose_model(
    name: Option<String>,
    base_url: Option<String>,
    key: Option<ApiKey>,
) -> anyhow::Result<ModelChoice> {
    let filled = |text: Option<String>| {
        text.map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    };
    match (filled(name), filled(base_url), key) {
        (None, None, None) => Ok(ModelChoice::Practice),
        (Some(_), None, None) => bail!(
            "a model is named but there is no way to reach it: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server without keys"
        ),
        (Some(name), base_url, key) => Ok(ModelChoice::OpenAi {
            name,
            base_url,
            key,
        }),
        (None, _, _) => bail!(
            "OPENAI_API_KEY or OPENAI_BASE_URL is set but no model is named: set GANTRY_MODEL (or name under [model] in gantry.toml), or unset them to use the practice model"
        ),
    }
}

/// The names of our own certificate: those that were asked for, else what the address says.
fn names(asked: Vec<String>, listen: SocketAddr) -> Vec<String> {
    if !asked.is_empty() {
        return asked;
    }
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    if !listen.ip().is_unspecified() && !listen.ip().is_loopback() {
        names.push(listen.ip().to_string());
    }
    names
}

fn read_file(asked: Option<&Path>, home: &Path) -> anyhow::Result<File> {
    let default = home.join("gantry.toml");
    let path = asked.unwrap_or(&default);
    match std::fs::read_to_string(path) {
        Ok(text) => toml::from_str(&text).map_err(|error| not_understood(path, &text, &error)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && asked.is_none() => {
            Ok(File::default())
        }
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

/// One line, and nothing of the file's own words: it may hold what is nobody's business.
fn not_understood(path: &Path, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.unwrap_or_default().matches('\n').count() + 1;
    anyhow!(
        "{}, line {line}: {}; correct it, or take the line out",
        path.display(),
        error.message().replace('\n', ", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // Built by hand, not parsed: the environment of whoever runs the tests must not show.
    fn resolve(toml: &str, args: RunArgs) -> anyhow::Result<Settings> {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(home.path().join("gantry.toml"), toml).expect("it is written");
        Settings::resolve(args, Environment::default(), home.path())
    }

    fn error(toml: &str, args: RunArgs) -> String {
        format!("{:#}", resolve(toml, args).err().expect("it is refused"))
    }

    fn listen(address: &str) -> RunArgs {
        RunArgs {
            listen: Some(address.parse().expect("an address")),
            ..RunArgs::default()
        }
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let message = error("[server]\nlissten = \"127.0.0.1:1\"\n", RunArgs::default());
        assert!(
            message.contains("lissten") && message.contains("line 2"),
            "{message}"
        );
    }

    #[test]
    fn a_mistake_in_the_file_is_told_on_one_line_and_without_what_the_file_says() {
        for toml in [
            "[model]\nkey = \"sk-secret\"\n",
            "\n[model\n",
            "[model]\nname = \"sk-secret\n",
        ] {
            let message = error(toml, RunArgs::default());
            assert!(message.contains("gantry.toml, line 2: "), "{message}");
            assert!(
                !message.contains('\n') && !message.contains("secret"),
                "{message}"
            );
        }
    }

    #[test]
    fn plain_text_is_refused_on_an_address_that_others_can_reach() {
        assert!(error("", listen("0.0.0.0:7000")).contains("--tls"));
        assert!(
            resolve(
                "",
                RunArgs {
                    tls: true,
                    ..listen("0.0.0.0:7000")
                }
            )
            .is_ok()
        );
        assert!(
            resolve(
                "",
                RunArgs {
                    behind_proxy: true,
                    ..listen("0.0.0.0:7000")
                }
            )
            .is_ok()
        );
        assert!(resolve("", listen("[::1]:7000")).is_ok());
    }

    #[test]
    fn a_model_needs_a_name_and_a_way_to_reach_it() {
        let named = |name: &str| RunArgs {
            model: Some(name.to_owned()),
            ..RunArgs::default()
        };
        let based = RunArgs {
            base_url: Some("http://127.0.0.1:1/v1".to_owned()),
            ..RunArgs::default()
        };
        assert!(matches!(
            resolve("", RunArgs::default()).expect("it is fine").model,
            ModelChoice::Practice
        ));
        assert!(error("", named("gpt-5")).contains("OPENAI_API_KEY"));
        assert!(error("", based).contains("GANTRY_MODEL"));
        let file = "[model]\nname = \"llama\"\nbase_url = \"http://127.0.0.1:1/v1\"\n";
        let settings = resolve(file, named("qwen")).expect("it is fine");
        assert!(
            matches!(settings.model, ModelChoice::OpenAi { name, base_url: Some(_), key: None } if name == "qwen")
        );
    }
}
