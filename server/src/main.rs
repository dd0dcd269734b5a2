//! The composition root of the server: settings, concrete types, signals, shutdown.

// A closed pipe must not end a program with a panic: see `shared_program::say`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod backup;
mod certificate;
mod check;
mod drain;
mod folder_lock;
mod health;
mod listeners;
mod operator;
mod ownership;
mod reload;
mod restore;
mod rotate;
mod running;
mod schema;
mod secrets;
mod settings;
mod signals;

use std::{io::Write as _, path::Path, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use clap::{CommandFactory as _, Parser as _};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use server_api::{Archives, Doors, HostNames};
use server_app::{
    App, DatabaseClock, JoinTerms, Parts,
    keys::{LinkKeys, SigningKey},
    vault::{Plain, Vault},
};
use server_llm::{
    Breaker, Measured, Models, Offer, OperatorAccount, Practice, ServerOptions, WireFormat,
};
use server_peers::PeerClient;
use server_store::{Outputs, Store};
use server_web::Web;
use shared_program::note;
use shared_telemetry::{MetricsHandle, server, traces::TraceOptions};
use shared_tls::{
    ServerTls,
    peer::{ClusterKey, PeerTls},
};
use shared_types::{Clock, Entropy, OsEntropy, ReplicaId, SystemClock, clean::clean};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use certificate::Certificate;
use folder_lock::FolderLock;
use listeners::Listeners;
use reload::{Reloader, SettingsSources};
use running::RunningServer;
use settings::{
    AppSettings, Cli, DatabaseChoice, Environment, MasterKeyChoice, ModelChoice, ServerSettings,
    SettingsVerb, Tls, TraceSettings,
};
use signals::ProcessSignals;

/// jemalloc, because it gives memory back: 15 s after 1,000 links had gone at once, glibc still held
/// all of the 79 MiB, jemalloc with its background threads 32 MiB. Memory for each link and the time
/// of an exec are the same with both.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The settings of jemalloc (jemalloc(3), TUNING): two arenas, and freed pages go back after 0.1 s instead of 10 s.
/// While 200 MB of output passed, the server held at most 32 to 33 MiB instead of 37.6; its program takes 19 of them.
/// Copies of a file were as fast.
#[expect(unsafe_code, reason = "jemalloc finds its settings by this name")]
// SAFETY: nothing else has this name, which belongs to jemalloc in this program, and jemalloc reads
// the bytes to their NUL and never writes them.
#[unsafe(export_name = "_rjem_malloc_conf")]
static ALLOCATOR_SETTINGS: &[u8; 46] = b"narenas:2,dirty_decay_ms:100,muzzy_decay_ms:0\0";

/// The interval between removals of old samples from the metrics.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    // Before anything else: the environment holds a model's key.
    let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let cli = Cli::parse();
    if let SettingsVerb::Manual { folder } = &cli.verb {
        return manual(folder);
    }
    let kept = hidden.and_then(|()| match &cli.verb {
        SettingsVerb::Run(args) if args.dumpable => {
            set_dumpable_behavior(DumpableBehavior::Dumpable)
        }
        _ => Ok(()),
    });
    let ended = kept
        .context("failed to keep other processes from reading this one's memory")
        .and_then(|()| run(cli, Environment::read()));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note!("gantry-server: {}", clean(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

/// Writes the shell completions, the man pages, the reference, an example of the settings and the API's document.
fn manual(folder: &Path) -> ExitCode {
    let written = shared_program::write_manual(Cli::command(), folder)
        .and_then(|()| settings::reference::write(folder))
        .and_then(|()| {
            let document = serde_json::to_string_pretty(&server_api::openapi())?;
            std::fs::write(folder.join("openapi.json"), document + "\n")
        });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let folder = folder.display();
            note!("gantry-server: {folder} cannot be written: {error}; choose another folder");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(cli: Cli, environment: Environment) -> anyhow::Result<()> {
    shared_tls::install_provider();
    let home = cli.home(&environment)?;
    let (folder, config) = (home.join("server"), cli.config.as_deref());
    if !matches!(cli.verb, SettingsVerb::Restore { .. }) {
        restore::require_finished(&folder)?;
    }
    match cli.verb {
        SettingsVerb::Run(args) => {
            let origin = SettingsSources {
                args: *args,
                environment,
                config: cli.config,
                home,
            };
            serve(origin).await
        }
        SettingsVerb::SignInCode { user } => {
            let database = settings::database(environment, config, &home)?;
            let verb = operator::sign_in_code(&database, &folder, user.as_deref());
            ownership::of_home(&home, verb).await
        }
        SettingsVerb::JoinToken {
            name,
            valid_for,
            uses,
            ephemeral,
            file,
            once,
        } => {
            let terms = JoinTerms {
                name,
                valid_for_s: u32::try_from(valid_for.as_secs()).unwrap_or(u32::MAX),
                uses,
                ephemeral,
                ..JoinTerms::default()
            };
            let database = settings::database(environment, config, &home)?;
            let verb = operator::join_token(&database, &folder, terms, once, file.as_deref());
            ownership::of_home(&home, verb).await
        }
        SettingsVerb::CheckConfig(args) => {
            let file = settings::file(config, &home);
            let settings = ServerSettings::resolve(*args, environment, config, &home)?;
            check::check(settings, &file, &folder).await
        }
        SettingsVerb::Migrate { check } => {
            let database = settings::database(environment, config, &home)?;
            ownership::of_home(&home, schema::migrate(&database, &folder, check)).await
        }
        SettingsVerb::Backup { file } => {
            let (database, key) = settings::database_and_master_key(environment, config, &home)?;
            backup::back_up(&database, &key, &folder, &file).await
        }
        SettingsVerb::Restore { file } => {
            let (database, key) = settings::database_and_master_key(environment, config, &home)?;
            ownership::of_home(&home, restore::restore(&database, &key, &folder, &file)).await
        }
        SettingsVerb::Move { to } => {
            let database = settings::database(environment, config, &home)?;
            ownership::of_home(&home, backup::move_to(&database, &to, &home)).await
        }
        SettingsVerb::Drain { replica, wait } => {
            let database = settings::database(environment, config, &home)?;
            drain::drain(&database, &folder, replica.as_deref(), wait).await
        }
        SettingsVerb::Undrain { replica } => {
            let database = settings::database(environment, config, &home)?;
            drain::undrain(&database, &folder, replica.as_deref()).await
        }
        SettingsVerb::Health => health::health(&folder).await,
        SettingsVerb::Reload => reload::run(&folder).await,
        SettingsVerb::RotateLinkKey { now } => rotate::rotate(&home, now).await,
        SettingsVerb::Secrets { verb } => {
            let (database, key) = settings::database_and_master_key(environment, config, &home)?;
            let verb = secrets::run(verb, &database, &key, &folder);
            ownership::of_home(&home, verb).await
        }
        // `main` has done it: it needs no home.
        SettingsVerb::Manual { .. } => Ok(()),
    }
}

async fn serve(origin: SettingsSources) -> anyhow::Result<()> {
    let (settings, folder) = (origin.resolve()?, &*origin.folder());
    let process = Process::new();
    // Before the logs, which take the spans of requests out of their stream.
    let metrics = install_telemetry(settings.traces.as_ref(), &process)?;
    let logs = settings.logs.init(process.clock.clone())?;
    // From here on a signal means to stop in order, however early it comes.
    let mut signals = ProcessSignals::listen()?;
    let descriptors = listeners::allow_many_descriptors();
    make_private_folder(&folder.join("keys"))?;
    let lock = FolderLock::in_folder(folder).await?;
    let (store, outputs) = open_storage(&settings.database, folder).await?;
    let looked = process.database_clock.look(&store).await;
    looked.context("failed to read the clock of the database")?;
    let tls = tls(&settings.tls, folder)?;
    let archives = Archives::in_folder(&settings.downloads)?;
    let mut listeners = Listeners::bind(&settings).await?;
    let place = lock.place(process.clock.boot())?;
    let vault = vault(&settings.master_key, &store, &process).await?;
    let place = Place {
        place,
        peer_address: listeners.peer_address(),
    };
    let app = start_app(settings.app, store, outputs, vault, folder, place, &process).await?;
    let sha256 = tls.as_ref().map(ServerTls::certificate_sha256);
    let running = RunningServer::here(listeners.address()?, sha256);
    running.tell(folder)?;
    announce(&app, &listeners, tls.as_ref()).await?;
    warn_of_unnamed_proxy(settings.behind_proxy, &settings.names);
    let certificate = Certificate::of(settings.tls, settings.names);
    let names = names(certificate.names(), tls.as_ref());
    let names: HostNames = names.into_iter().collect();
    let tls = tls.map(watch::Sender::new);
    tokio::spawn(upkeep(metrics.clone()));
    let doors = Doors {
        version: shared_program::VERSION,
        app: Arc::new(app.clone()),
        metrics,
        archives,
        limits: settings.limits,
        names: names.clone(),
        https: tls.is_some() || settings.behind_proxy,
        entropy: process.entropy.clone(),
    };
    let certificates = tls.as_ref().map(watch::Sender::subscribe);
    let peers = listeners.take_peers();
    let mut serving = listeners.serve(doors, certificates, descriptors, &process.stop);
    if let Some(listener) = peers {
        serving.push(serve_peers(listener, &app, &process).await?);
    }
    let mut reloader = Reloader {
        origin,
        started_with: settings.written,
        logs,
        names,
        certificate,
        tls,
        app: app.clone(),
        clock: process.clock,
        entropy: process.entropy,
        running,
    };
    reloader.run_until_stop(&mut signals).await;
    stop_in_order(app, serving, settings.drain, &process.stop, &mut signals).await
}

/// The time, the randomness, the id and the end of this process.
struct Process {
    clock: Arc<dyn Clock>,
    database_clock: Arc<DatabaseClock>,
    entropy: Arc<dyn Entropy>,
    replica: ReplicaId,
    stop: CancellationToken,
}

impl Process {
    fn new() -> Self {
        let clock = Arc::new(DatabaseClock::new(SystemClock::new()));
        let entropy = Arc::new(OsEntropy);
        Self {
            replica: ReplicaId::generate(&*clock, &*entropy),
            database_clock: Arc::clone(&clock),
            clock,
            entropy,
            stop: CancellationToken::new(),
        }
    }
}

/// Installs the metrics, and the traces where a collector is set.
fn install_telemetry(
    traces: Option<&TraceSettings>,
    process: &Process,
) -> anyhow::Result<MetricsHandle> {
    let metrics = shared_telemetry::install_metrics(server::ALL, env!("CARGO_PKG_VERSION"))?;
    if let Some(traces) = traces {
        let options = TraceOptions {
            endpoint: traces.endpoint.clone(),
            sample: traces.sample,
            service: "gantry-server",
            version: env!("CARGO_PKG_VERSION"),
            instance: process.replica.to_string(),
            sent: &server::SPANS_SENT,
            dropped: &server::SPANS_DROPPED,
        };
        shared_telemetry::traces::install_traces(&options, process.entropy.clone())?;
    }
    Ok(metrics)
}

async fn open_storage(
    database: &DatabaseChoice,
    folder: &Path,
) -> anyhow::Result<(Store, Outputs)> {
    let store = database
        .open()
        .await
        .context("failed to open the database")?;
    let outputs = Outputs::open(&folder.join("output"), &store)
        .await
        .context("failed to open the output of commands")?;
    Ok((store, outputs))
}

/// The vault of the stored secrets, whose master key fits them.
async fn vault(
    choice: &MasterKeyChoice,
    store: &Store,
    process: &Process,
) -> anyhow::Result<Vault> {
    let source = choice.source().await?;
    let (clock, entropy) = (process.clock.clone(), process.entropy.clone());
    let vault = Vault::unlock(store.clone(), source, clock, entropy).await;
    vault.context("failed to use the master key")
}

/// Answers the other servers of the database, and asks them.
async fn serve_peers(
    listener: TcpListener,
    app: &App,
    process: &Process,
) -> anyhow::Result<JoinHandle<()>> {
    let made = ClusterKey::generate()?.to_pem();
    let key = app.peers.cluster_key(|| Plain::new(made)).await?;
    let key = key.expose_text().context("the cluster key is no text")?;
    let tls = PeerTls::new(ClusterKey::from_pem(key)?, &process.replica.to_string())?;
    let (app, clock) = (app.clone(), &process.clock);
    let calls = PeerClient::new(tls.clone(), clock.clone());
    app.peers.ask_by(Arc::new(calls)).await;
    tracing::info!(address = %listener.local_addr()?, "listening for other servers");
    let (clock, stop) = (clock.clone(), process.stop.clone());
    let serving = server_peers::serve(listener, tls, Arc::new(app), clock, stop);
    Ok(tokio::spawn(serving))
}

/// Where this process runs, and where other servers reach it.
struct Place {
    place: String,
    peer_address: Option<String>,
}

async fn start_app(
    settings: AppSettings,
    store: Store,
    outputs: Outputs,
    vault: Vault,
    folder: &Path,
    Place {
        place,
        peer_address,
    }: Place,
    process: &Process,
) -> anyhow::Result<App> {
    let (clock, entropy) = (&process.clock, &process.entropy);
    let app = App::start(Parts {
        store,
        outputs,
        vault,
        models: models(settings.model, clock)?,
        catalogue: settings.catalogue,
        prompt: settings.prompt,
        reach: settings.reach,
        web: Arc::new(Web::new(settings.web)?),
        operator: settings.defaults,
        model_window: settings.model_window,
        rules: settings.rules,
        identity: SigningKey::load_or_create(&folder.join("keys/identity.pem"), &**entropy)?,
        link_keys: LinkKeys::load(&folder.join("keys"), &**clock, &**entropy)?,
        link: settings.link,
        ephemeral_silence: settings.ephemeral_silence,
        turns: settings.turns,
        isolation: Arc::new(settings.isolation),
        user_limits: settings.user_limits,
        replica: process.replica,
        place,
        peer_address,
        version: shared_program::VERSION.to_owned(),
        clock: clock.clone(),
        database_clock: Some(Arc::clone(&process.database_clock)),
        entropy: entropy.clone(),
        stop: process.stop.clone(),
    });
    Ok(app.await?)
}

fn warn_of_unnamed_proxy(behind_proxy: bool, names: &[String]) {
    if behind_proxy && names.is_empty() {
        tracing::warn!(
            "no names are set under [server] in gantry.toml: requests are answered only where their host is an address, localhost or this machine's name"
        );
    }
}

/// Lets turns and requests end. A signal during the drain ends the drain, a signal after it ends the process at once.
async fn stop_in_order(
    app: App,
    serving: Vec<JoinHandle<()>>,
    drain: Duration,
    stop: &CancellationToken,
    signals: &mut ProcessSignals,
) -> anyhow::Result<()> {
    app.leave();
    tracing::info!(drain_ms = drain.as_millis() as u64, "stopping");
    tokio::select! {
        () = tokio::time::sleep(drain) => {}
        () = signals.stop() => {}
    }
    stop.cancel();
    let stopped = async {
        for door in serving {
            door.await?;
        }
        app.idle().await;
        // A database that does not answer would keep them back.
        shared_telemetry::traces::flush().await;
        app.close().await;
        Ok(())
    };
    tokio::select! {
        stopped = stopped => stopped,
        () = signals.stop_again() => {
            tracing::warn!("asked again to stop: ending at once; other servers take over once the lease of this one is over");
            // A task that it waits for could delay the end of the runtime as well.
            std::process::exit(1)
        }
    }
}

fn tls(tls: &Tls, folder: &Path) -> anyhow::Result<Option<ServerTls>> {
    Ok(match tls {
        Tls::Off => None,
        Tls::SelfSigned { names } => Some(ServerTls::self_signed(&folder.join("keys"), names)?),
        Tls::Files { certificate, key } => Some(ServerTls::from_files(certificate, key)?),
    })
}

/// The accepted host names: those of the settings, those in the certificate, and this machine's, also as a local
/// network has it (RFC 6762).
fn names(set: Vec<String>, tls: Option<&ServerTls>) -> Vec<String> {
    let host = machine();
    let local = host.iter().map(|host| format!("{host}.local"));
    let of_certificate = tls.into_iter().flat_map(ServerTls::names).cloned();
    let names = set.into_iter().chain(of_certificate).chain(local);
    names.chain(host.clone()).collect()
}

/// This machine's name.
fn machine() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Prints on standard output, one thing a line, the facts that a person or `make up` needs next. The server also serves
/// if no reader listens.
async fn announce(app: &App, listeners: &Listeners, tls: Option<&ServerTls>) -> anyhow::Result<()> {
    let first = app.access.bootstrap().await?;
    let mut lines = String::new();
    let mut code = None;
    if !app.access.has_signed_in(first.tenant, first.owner).await? {
        if app.is_first_server().await? {
            let issued = app.access.issue_code(first.tenant, first.owner).await?;
            lines += &format!("sign-in code: {issued}\n");
            code = Some(issued);
        } else {
            // A newer code would end that one.
            lines += "no new sign-in code: another server of this database has printed one; \
                for another: gantry-server sign-in-code\n";
        }
    }
    if let Some(tls) = tls {
        let digest = shared_types::Digest::from_slice(&tls.certificate_sha256())
            .context("a SHA-256 has 32 bytes")?;
        lines += &format!("certificate: {digest}\n");
    }
    if let Some(metrics) = listeners.metrics_address()? {
        lines += &format!("metrics on http://{metrics}/metrics\n");
    }
    let address = listeners.address()?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    lines += &format!("listening on {scheme}://{address}\n");
    // Every address of the machine is none that a browser could open.
    if let Some(code) = code.filter(|_| server_api::has_console() && !address.ip().is_unspecified())
    {
        // Behind `#`, so that no proxy and no log gets to see the code.
        lines += &format!("open {scheme}://{address}/sign-in#code={code}\n");
    }
    let mut stdout = std::io::stdout().lock();
    let _ = stdout
        .write_all(lines.as_bytes())
        .and_then(|()| stdout.flush());
    tracing::info!(url = %format_args!("{scheme}://{address}"), model = app.model().name, "listening");
    Ok(())
}

fn models(choice: ModelChoice, clock: &Arc<dyn Clock>) -> anyhow::Result<Models> {
    let (first, accounts) = match choice {
        ModelChoice::Practice => {
            let practice = Measured::new(Practice, clock.clone());
            return Ok(Models::new(Offer::Whole(Arc::new(practice)), []));
        }
        ModelChoice::Servers { first, accounts } => (*first, accounts),
    };
    let mut offers = first
        .models()
        .map(|(format, options)| offer(format, options));
    let first = offers.next().context("the first server has no model")?;
    let others: Vec<_> = offers.collect::<anyhow::Result<_>>()?;
    let accounts = accounts.into_iter().map(|server| {
        let name = server.options.account.clone().unwrap_or_default();
        let models = server
            .models()
            .map(|(format, options)| offer(format, options));
        let models = models.collect::<anyhow::Result<_>>()?;
        Ok(OperatorAccount { name, models })
    });
    let accounts: Vec<_> = accounts.collect::<anyhow::Result<_>>()?;
    Ok(Models::new(first?, others).with_accounts(accounts))
}

fn offer(format: WireFormat, options: ServerOptions) -> anyhow::Result<Offer> {
    let of = match &options.account {
        None => "OPENAI_BASE_URL, or base_url under [model], cannot be used".to_owned(),
        Some(name) => {
            format!("base_url of the account {name} of [[model.accounts]] cannot be used")
        }
    };
    let vendor = server_llm::vendor(format, options).context(of)?;
    Ok(Offer::Vendor(Arc::new(Breaker::new(vendor))))
}

fn make_private_folder(folder: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| {
            format!(
                "{} cannot be made: set GANTRY_HOME to a folder of yours",
                folder.display()
            )
        })
}

async fn upkeep(metrics: MetricsHandle) {
    let mut tick = tokio::time::interval(METRICS_UPKEEP);
    loop {
        tick.tick().await;
        metrics.upkeep();
    }
}
