//! The operator's settings: flags and environment over `gantry.toml` over defaults.
//!
//! Only this module of the server reads the environment. An unknown key in the file is an error, so that no key is
//! silently without effect.

mod connections;
mod database;
mod defaults;
mod isolation;
mod limits;
mod link;
mod listen;
mod metrics;
mod model;
mod peers;
mod permissions;
pub(crate) mod reference;
mod runners;
mod secrets;
mod traces;
mod turns;
mod web;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, anyhow, bail};
use clap::{Args, Parser, Subcommand, builder::FalseyValueParser};
use schemars::JsonSchema;
use serde::Deserialize;
use server_api::{HeaderName, Limits};
use server_app::{IsolationPolicy, OperatorSettings, SetRule, TurnLimits, UserLimits};
use server_llm::{Catalogue, Providers, Reach};
use server_router::links::LinkOptions;
use server_web::WebOptions;
use shared_telemetry::Logs;
use shared_types::{Clock, Mode, parse_duration};

use self::{
    connections::ConnectionsSection,
    database::DatabaseSection,
    defaults::DefaultsSection,
    isolation::IsolationSection,
    limits::LimitsSection,
    link::LinkSection,
    listen::Listen,
    metrics::MetricsSection,
    model::{ModelArgs, ModelSection},
    peers::PeersSection,
    permissions::PermissionsSection,
    runners::RunnersSection,
    secrets::SecretsSection,
    traces::TracesSection,
    turns::TurnsSection,
    web::WebSection,
};
pub(crate) use self::{
    database::DatabaseChoice,
    model::{ModelChoice, ModelServer},
    peers::PeerSettings,
    secrets::MasterKeyChoice,
    traces::TraceSettings,
};

/// The longest that a server may go on after it was asked to stop.
const DRAIN_AT_MOST: Duration = Duration::from_secs(300);

/// The server of Gantry, a control plane for AI agents that work on your own machines.
#[derive(Parser)]
#[command(name = "gantry-server", version = shared_program::VERSION)]
pub(crate) struct Cli {
    /// The folder of all state [default: ~/.gantry].
    #[arg(long, env = "GANTRY_HOME", global = true)]
    home: Option<PathBuf>,
    /// The settings file [default: gantry.toml in the home folder, if it exists].
    #[arg(long, env = "GANTRY_CONFIG", global = true)]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) verb: SettingsVerb,
}

#[derive(Subcommand)]
pub(crate) enum SettingsVerb {
    /// Run the server until SIGTERM or Ctrl-C.
    Run(Box<RunArgs>),
    /// Print a new one-time sign-in code, by default for the first owner.
    SignInCode {
        /// The person who signs in with the code; `gantry people` lists the names.
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
    },
    /// Print a join token, with which runners enrol.
    JoinToken {
        /// The runner's name; without it, the runner chooses.
        #[arg(long, default_value = "")]
        name: String,
        /// The validity of the token, such as 90s or 1h; at most 30d.
        #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_duration)]
        valid_for: Duration,
        /// The number of runners that may enrol with the token, at most 1000.
        #[arg(long, value_name = "RUNNERS", default_value = "1")]
        uses: u32,
        /// Remove these runners when they stop with nothing running, or after a day of silence.
        #[arg(long)]
        ephemeral: bool,
        /// Write the token to this file, which only its user may read, and print nothing.
        #[arg(long)]
        file: Option<PathBuf>,
        /// Make no token where a runner of this name is enrolled, and remove the file.
        #[arg(long, requires = "name")]
        once: bool,
    },
    /// Check the settings and the database as `run` would use them, and change nothing.
    CheckConfig(Box<RunArgs>),
    /// Bring the database to the schema of this version, as `run` does when it starts.
    Migrate {
        /// Change nothing; fail if something is to be done.
        #[arg(long)]
        check: bool,
    },
    /// Write everything of the server to a new file: the database, the keys but for the master key, the output of
    /// commands. The server may run.
    Backup {
        /// The file, such as `gantry.tar.gz`. It holds the server's keys, so keep it as safe as them.
        file: PathBuf,
    },
    /// Restore a backup into an empty home and an empty database.
    Restore {
        /// The file that `backup` wrote.
        file: PathBuf,
    },
    /// Copy the database into an empty one, and compare both. The server must not run.
    Move {
        /// The new database: `postgres://USER@HOST/DATABASE`, whose password comes from `~/.pgpass` or
        /// PGPASSWORD, or `sqlite` for the file in the home.
        #[arg(long, value_name = "DATABASE")]
        to: String,
    },
    /// Empty a server among several on one PostgreSQL: it claims no turns and takes no links, and gives those that it
    /// has to the others. It serves requests until it is stopped. Exits with 0 once it is empty.
    Drain {
        /// The server, by its id or the beginning of one, which `gantry status --replicas` lists [default: the one of
        /// this home].
        #[arg(long, value_name = "ID")]
        replica: Option<String>,
        /// The longest wait until it is empty, such as 90s or 10m.
        #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_duration)]
        wait: Duration,
    },
    /// Have a server that drains take links and turns again.
    Undrain {
        /// The server, as for `drain`.
        #[arg(long, value_name = "ID")]
        replica: Option<String>,
    },
    /// Ask the server that runs on this home whether it is ready to serve; exits with 1 if not.
    Health,
    /// Have the server that runs on this home read its settings, certificate and link keys again. A mistake in
    /// them changes nothing.
    Reload,
    /// Make a new key for the access tokens of runners, and have a running server use it. Tokens of the key
    /// before are accepted for ten more minutes.
    RotateLinkKey {
        /// Refuse tokens of the key before at once, because it may be in wrong hands.
        #[arg(long)]
        now: bool,
    },
    /// Manage the master key, which wraps the keys of the stored secrets.
    Secrets {
        #[command(subcommand)]
        verb: SecretsVerb,
    },
    /// Write the shell completions, the man pages and the reference into a folder
    #[command(hide = true)]
    Manual {
        /// The folder.
        folder: PathBuf,
    },
}

#[derive(Subcommand)]
pub(crate) enum SecretsVerb {
    /// Wrap the keys of all stored secrets by a new master key, also while the server runs. Where the settings name
    /// the source of the master key, it is the first key of that source.
    Rotate,
    /// Remove all secrets that need a lost master key, of all tenants. People enter them again.
    Forget {
        /// The id of the lost master key, such as `mk_0123456789abcdef`; the server names it when it refuses to start.
        master_key: String,
    },
}

#[derive(Args, Default, Clone)]
pub(crate) struct RunArgs {
    /// The address and port to listen on; port 0 chooses a free one [default: 127.0.0.1:7000].
    #[arg(long, env = "GANTRY_LISTEN")]
    listen: Option<Listen>,
    /// A host name of this server, such as `gantry.example.com` or `*.example.com`; may be repeated.
    /// IP addresses, `localhost`, this machine's name and the certificate's names are always accepted.
    #[arg(
        long = "name",
        value_name = "NAME",
        env = "GANTRY_NAMES",
        value_delimiter = ','
    )]
    names: Vec<String>,
    /// Serve TLS with a self-made certificate, which join tokens carry to runners.
    #[arg(long, env = "GANTRY_TLS", value_parser = FalseyValueParser::new())]
    tls: bool,
    /// Serve plain HTTP on a public address, because a proxy in front ends TLS.
    #[arg(long, env = "GANTRY_BEHIND_PROXY", value_parser = FalseyValueParser::new())]
    behind_proxy: bool,
    /// The address to answer `GET /metrics` on without a key, such as 127.0.0.1:9464 [default: none].
    #[arg(long, value_name = "ADDRESS", env = "GANTRY_METRICS")]
    metrics: Option<Listen>,
    /// The address to answer the other servers of the database on, such as 0.0.0.0:7001. Only with PostgreSQL
    /// [default: none].
    #[arg(long, value_name = "ADDRESS", env = "GANTRY_PEER_LISTEN")]
    peer_listen: Option<Listen>,
    /// The host and port at which other servers reach that address [default: the address of `--peer-listen`, or this
    /// machine's name where that is every address].
    #[arg(long, value_name = "HOST:PORT", env = "GANTRY_PEER_ADDRESS")]
    peer_address: Option<String>,
    /// Send traces to this collector, by OTLP over gRPC, such as http://127.0.0.1:4317 [default: none].
    #[arg(long, value_name = "URL", env = "GANTRY_TRACES")]
    traces: Option<String>,
    #[command(flatten)]
    model: ModelArgs,
    /// The mode of agents where no person has set one: plan, ask, auto or full [default: ask where nothing keeps
    /// commands apart, else auto].
    #[arg(long, value_name = "MODE", env = "GANTRY_MODE")]
    mode: Option<Mode>,
    /// The log filter, such as `info` or `info,server_router=debug`.
    #[arg(long, env = "GANTRY_LOG")]
    log: Option<String>,
    /// The format of log lines: `text` or `json`.
    #[arg(long, env = "GANTRY_LOG_FORMAT")]
    log_format: Option<String>,
    /// Allow core dumps, and let other processes of this user read the server's memory, secrets included.
    #[arg(long, env = "GANTRY_DUMPABLE", value_parser = FalseyValueParser::new())]
    pub(crate) dumpable: bool,
}

/// Settings that come only from the environment. A flag would show the key in the process list. The others belong to
/// the process that starts the programs.
#[derive(Default, Clone)]
pub(crate) struct Environment {
    user_home: Option<PathBuf>,
    /// The keys of model providers, by their variables.
    model_keys: BTreeMap<String, String>,
    /// The keys of providers of searches, by their variables.
    search_keys: BTreeMap<&'static str, String>,
    database_url: Option<String>,
    master_key: Option<String>,
    journal_stream: Option<String>,
    /// `downloads` beside this program.
    downloads: PathBuf,
}

impl Environment {
    /// Reads the environment once, before there are other threads, and overwrites the secrets in it. clap reads the
    /// variables that also have a flag.
    #[expect(
        clippy::disallowed_methods,
        reason = "`main` reads the environment and passes it down"
    )]
    pub(crate) fn read() -> Self {
        Self {
            user_home: std::env::var_os("HOME").map(PathBuf::from),
            model_keys: model::keys_of_environment(),
            search_keys: web::keys_of_environment(),
            database_url: shared_program::take_secret(database::URL),
            master_key: shared_program::take_secret(secrets::MASTER_KEY),
            journal_stream: std::env::var(shared_telemetry::JOURNAL_STREAM).ok(),
            downloads: std::env::current_exe()
                .unwrap_or_default()
                .with_file_name("downloads"),
        }
    }
}

/// `gantry.toml`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct File {
    /// The server's addresses and names, and its stop.
    server: ServerSection,
    /// The database, which stores all durable data.
    database: DatabaseSection,
    /// The master key, which wraps the keys of the stored secrets. It is in no backup.
    secrets: SecretsSection,
    /// The certificate. Without one the server speaks plain HTTP, on its own machine or behind a proxy.
    tls: TlsSection,
    /// The time limits of the port for any connection, and the bounds for connections without a credential (strangers).
    connections: ConnectionsSection,
    /// The heartbeats by which the two ends of a runner's link recognise a lost link. Runners learn them from the
    /// server.
    link: LinkSection,
    /// Runners that stay away.
    runners: RunnersSection,
    /// The number of turns that the server works on at once.
    turns: TurnsSection,
    /// The isolation that is demanded of sandboxes, and the runners whose report counts.
    isolation: IsolationSection,
    /// The storage and the rates of one user.
    limits: LimitsSection,
    /// The models that answer.
    model: ModelSection,
    /// Providers of models, by name: what is given here replaces or adds to what the program knows of them.
    providers: Providers,
    /// The pages of the web that the model may ask the server for.
    web: WebSection,
    /// The values that count where no tenant, user or session has set any.
    defaults: DefaultsSection,
    /// Rules about what agents may do.
    permissions: PermissionsSection,
    /// A listener for the metrics alone.
    metrics: MetricsSection,
    /// A listener for the other servers that use the same PostgreSQL. With it, people see text and output that is under
    /// way at another server.
    peers: PeersSection,
    /// The collector for spans of traces.
    traces: TracesSection,
    /// The log.
    log: LogSection,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ServerSection {
    /// The address and port to listen on, as `--listen` [default: 127.0.0.1:7000].
    #[schemars(with = "Option<String>", example = &"0.0.0.0:7443")]
    listen: Option<Listen>,
    /// Host names by which clients reach the server, as `--name`, beside its addresses, localhost, the machine's
    /// name and those of the certificate. `*.example.com` is all that have one word before `.example.com`
    /// [default: none].
    #[schemars(example = ["gantry.example.com"])]
    names: Vec<String>,
    /// Serve plain HTTP on a public address, because a proxy in front ends TLS, as `--behind-proxy`
    /// [default: false].
    behind_proxy: bool,
    /// The header in which that proxy names the address of its client; the last one in it counts. Only with
    /// `behind_proxy`, where nothing else connects [default: none].
    #[schemars(example = &"x-forwarded-for")]
    client_address_header: Option<String>,
    /// The folder with the runner's programs that the server hands out [default: `downloads` beside
    /// `gantry-server`].
    #[schemars(example = &"/opt/gantry-server/downloads")]
    downloads: Option<PathBuf>,
    /// The time that the server continues after SIGTERM while `/readyz` says that it stops, at most 300000, so that a
    /// load balancer sends it nothing more. The process manager has to wait half a minute longer before it kills the
    /// server: `TimeoutStopSec` of systemd, `stop_grace_period` of Compose [default: 0].
    drain_ms: Option<u32>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct TlsSection {
    /// Use a certificate that the server makes, and that join tokens vouch for, as `--tls` [default: false].
    self_signed: bool,
    /// The names and addresses in that certificate [default: localhost, 127.0.0.1 and the address of `listen`].
    #[schemars(example = ["server", "192.168.1.5"])]
    names: Vec<String>,
    /// A file with your certificate and those up to its authority, in PEM [default: none].
    #[schemars(example = &"/etc/gantry/chain.pem")]
    certificate: Option<PathBuf>,
    /// A file with its private key, in PEM [default: none].
    #[schemars(example = &"/etc/gantry/key.pem")]
    key: Option<PathBuf>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct LogSection {
    /// The log filter, as `--log` [default: info].
    #[schemars(example = &"info,server_router=debug")]
    filter: Option<String>,
    /// The format: `text`, or `json` for machines, as `--log-format` [default: text].
    #[schemars(example = &"json")]
    format: Option<String>,
}

/// The content of the settings file, by sections.
pub(crate) type WrittenSettings = toml::Table;

/// All settings of `run`, checked.
pub(crate) struct ServerSettings {
    pub(crate) written: WrittenSettings,
    pub(crate) database: DatabaseChoice,
    /// The source of the master key.
    pub(crate) master_key: MasterKeyChoice,
    pub(crate) listen: SocketAddr,
    /// The address of the metrics without a key, if there is one.
    pub(crate) metrics: Option<SocketAddr>,
    /// The listener for other servers, if there is one.
    pub(crate) peers: Option<PeerSettings>,
    /// The collector for spans of traces, if there is one.
    pub(crate) traces: Option<TraceSettings>,
    /// Accepted host names, beside those that the server finds out itself.
    pub(crate) names: Vec<String>,
    /// True if a proxy in front of the server ends TLS.
    pub(crate) behind_proxy: bool,
    pub(crate) tls: Tls,
    pub(crate) limits: Limits,
    /// The header in which the proxy before the server names the address of its client.
    pub(crate) client_address: Option<HeaderName>,
    /// The folder with the archives of a runner's programs, if there are any.
    pub(crate) downloads: PathBuf,
    /// The time that the server continues once it was asked to stop.
    pub(crate) drain: Duration,
    pub(crate) app: AppSettings,
    pub(crate) logs: LogSettings,
}

/// The settings of the use cases.
pub(crate) struct AppSettings {
    pub(crate) link: LinkOptions,
    /// The silence after which an ephemeral runner is removed.
    pub(crate) ephemeral_silence: Duration,
    /// The number of turns that are carried at once, and their waits.
    pub(crate) turns: TurnLimits,
    /// The isolation that is demanded of sandboxes, and the runners whose report counts.
    pub(crate) isolation: IsolationPolicy,
    /// The storage and the rates of one user.
    pub(crate) user_limits: UserLimits,
    pub(crate) model: ModelChoice,
    /// The pages and searches that the model may ask for.
    pub(crate) web: WebOptions,
    /// The values that count where no tenant, user or session has set any.
    pub(crate) defaults: OperatorSettings,
    /// The operator's rules about what agents may do.
    pub(crate) rules: Vec<SetRule>,
    /// The models' window in tokens, where it is known.
    pub(crate) model_window: Option<usize>,
    /// The providers of models.
    pub(crate) catalogue: Catalogue,
    /// The text with which the system prompt begins; `None` for Gantry's own.
    pub(crate) prompt: Option<Arc<str>>,
    /// The networks in which the servers of people's model accounts may stand.
    pub(crate) reach: Reach,
}

/// The settings of the log.
pub(crate) struct LogSettings {
    pub(crate) filter: Option<String>,
    pub(crate) format: String,
    /// The variable by which systemd names its journal.
    journal_stream: Option<String>,
}

impl LogSettings {
    /// Begins to log.
    pub(crate) fn init(&self, clock: Arc<dyn Clock>) -> anyhow::Result<Logs> {
        Ok(shared_telemetry::init_logs(
            self.format.parse()?,
            self.filter.as_deref(),
            self.journal_stream.as_deref(),
            clock,
        )?)
    }
}

/// The protection of the port.
pub(crate) enum Tls {
    /// Plain text: loopback, or behind a proxy that ends TLS.
    Off,
    /// Our own certificate, for these names.
    SelfSigned { names: Vec<String> },
    /// The operator's certificate.
    Files { certificate: PathBuf, key: PathBuf },
}

impl Cli {
    /// The folder of all state.
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

impl ServerSettings {
    /// Combines the flags, the environment and the file.
    pub(crate) fn resolve(
        args: RunArgs,
        environment: Environment,
        config: Option<&Path>,
        home: &Path,
    ) -> anyhow::Result<Self> {
        let (file, written) = read_file(config, home)?;
        let database = file.database.choose(environment.database_url, home)?;
        let master_key = file.secrets.choose(environment.master_key, home)?;
        let listen = args
            .listen
            .or(file.server.listen)
            .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 7000)).into());
        let certified = names(file.tls.names, &listen);
        // Clients reach it by the name that it listens on.
        let given = args.names.into_iter().chain(listen.name).collect();
        let listen = listen.address;
        let tls = match (file.tls.certificate, file.tls.key) {
            (Some(certificate), Some(key)) => Tls::Files { certificate, key },
            (None, None) if args.tls || file.tls.self_signed => {
                Tls::SelfSigned { names: certified }
            }
            (None, None) => Tls::Off,
            _ => bail!("[tls] needs both certificate and key in gantry.toml"),
        };
        let behind_proxy = args.behind_proxy || file.server.behind_proxy;
        if matches!(tls, Tls::Off) && !listen.ip().is_loopback() && !behind_proxy {
            bail!(
                "{listen} can be reached from other machines and would speak plain text: add --tls, or --behind-proxy where something before the server ends TLS"
            );
        }
        let behind_proxy = args.behind_proxy || file.server.behind_proxy;
        let client_address = client_address(file.server.client_address_header, behind_proxy)?;
        let limits = file.connections.limits()?;
        let link = LinkOptions {
            age_at_most: limits.age_at_most,
            ..file.link.options()?
        };
        let isolation = file.isolation.policy()?;
        let model_window = file.model.window()?;
        let prompt = file.model.prompt()?;
        let catalogue = Catalogue::built_in()?.with(file.providers)?;
        let private_addresses = file.model.private_addresses;
        let keys = &environment.model_keys;
        let model = file.model.choose(args.model, keys, &catalogue)?;
        let peers = file
            .peers
            .settings(args.peer_listen, args.peer_address, &database)?;
        Ok(Self {
            written,
            database,
            master_key,
            listen,
            metrics: args
                .metrics
                .or(file.metrics.listen)
                .map(|listen| listen.address),
            peers,
            traces: file.traces.settings(args.traces)?,
            names: host_names(given, file.server.names)?,
            behind_proxy,
            tls,
            limits,
            client_address,
            downloads: file.server.downloads.unwrap_or(environment.downloads),
            drain: drain(file.server.drain_ms)?,
            app: AppSettings {
                link,
                ephemeral_silence: file.runners.ephemeral_silence()?,
                turns: file.turns.limits(file.runners.waited_for()?)?,
                user_limits: file.limits.user_limits()?,
                model,
                web: file.web.options(&environment.search_keys)?,
                defaults: file
                    .defaults
                    .settings(args.mode)?
                    .demanding(isolation.at_least.clone())
                    .forbidding_sudo(isolation.forbids_sudo),
                isolation,
                model_window,
                rules: file.permissions.rules()?,
                prompt,
                catalogue,
                reach: match private_addresses {
                    true => Reach::Everywhere,
                    false => Reach::PublicOnly,
                },
            },
            logs: LogSettings {
                journal_stream: environment.journal_stream,
                filter: args.log.or(file.log.filter),
                format: args
                    .log_format
                    .or(file.log.format)
                    .unwrap_or_else(|| "text".to_owned()),
            },
        })
    }
}

/// The database alone, for a short job of an operator.
pub(crate) fn database(
    environment: Environment,
    config: Option<&Path>,
    home: &Path,
) -> anyhow::Result<DatabaseChoice> {
    Ok(database_and_master_key(environment, config, home)?.0)
}

/// The database and the source of its master key, for a short job of an operator.
pub(crate) fn database_and_master_key(
    environment: Environment,
    config: Option<&Path>,
    home: &Path,
) -> anyhow::Result<(DatabaseChoice, MasterKeyChoice)> {
    let (file, _) = read_file(config, home)?;
    let database = file.database.choose(environment.database_url, home)?;
    let master_key = file.secrets.choose(environment.master_key, home)?;
    Ok((database, master_key))
}

fn drain(ms: Option<u32>) -> anyhow::Result<Duration> {
    let drain = Duration::from_millis(ms.unwrap_or(0).into());
    if drain > DRAIN_AT_MOST {
        bail!(
            "drain_ms under [server] in gantry.toml is at most {}",
            DRAIN_AT_MOST.as_millis()
        );
    }
    Ok(drain)
}

/// The header that names a client's address: believed only where every connection is a proxy's.
fn client_address(
    header: Option<String>,
    behind_proxy: bool,
) -> anyhow::Result<Option<HeaderName>> {
    let Some(header) = header else {
        return Ok(None);
    };
    if !behind_proxy {
        bail!(
            "client_address_header under [server] in gantry.toml needs behind_proxy = true: anybody else could name any address in it"
        );
    }
    let name = header.parse();
    let name = name.context("client_address_header under [server] in gantry.toml is the name of a header, such as \"x-forwarded-for\"")?;
    Ok(Some(name))
}

/// The names as they are compared, each a host's without scheme and port.
fn host_names(given: Vec<String>, of_file: Vec<String>) -> anyhow::Result<Vec<String>> {
    // A variable that is set to nothing names nothing.
    let given = given.into_iter().filter(|name| !name.is_empty());
    let names: Vec<String> = given.chain(of_file).collect();
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    for name in &names {
        let host = name.strip_prefix("*.").unwrap_or(name);
        if host.is_empty() || !host.chars().all(allowed) {
            bail!(
                "{name:?} is no host's name: write names under [server], or --name, as gantry.example.com or *.example.com, without scheme and port"
            );
        }
    }
    Ok(names)
}

/// The names of our own certificate: those that were asked for, else what the address says.
fn names(asked: Vec<String>, listen: &Listen) -> Vec<String> {
    if !asked.is_empty() {
        return asked;
    }
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let ip = listen.address.ip();
    if !ip.is_unspecified() && !ip.is_loopback() {
        names.push(ip.to_string());
        names.extend(listen.name.clone());
    }
    names
}

/// The settings file: the one that was asked for, else the one in the home, which need not exist.
pub(crate) fn file(asked: Option<&Path>, home: &Path) -> PathBuf {
    asked.map_or_else(|| home.join("gantry.toml"), Path::to_owned)
}

fn read_file(asked: Option<&Path>, home: &Path) -> anyhow::Result<(File, WrittenSettings)> {
    let path = &file(asked, home);
    match std::fs::read_to_string(path) {
        Ok(text) => {
            let read = toml::from_str(&text).and_then(|file| Ok((file, toml::from_str(&text)?)));
            read.map_err(|error| not_understood(path, &text, &error))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && asked.is_none() => {
            Ok((File::default(), WrittenSettings::default()))
        }
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

/// One line without the file's own words, because the file may hold secrets.
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
mod tests;
