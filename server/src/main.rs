//! The composition root of the server: settings, concrete types, signals, shutdown.

// A closed pipe must not end a program with a panic: see `shared_program::say`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod alone;
mod backup;
mod certificate;
mod check;
mod health;
mod operator;
mod ownership;
mod reload;
mod restore;
mod rotate;
mod running;
mod schema;
mod settings;
mod signals;

use std::{
    io::Write as _, net::SocketAddr, path::Path, process::ExitCode, sync::Arc, time::Duration,
};

use anyhow::Context as _;
use clap::{CommandFactory as _, Parser as _};
use rustix::process::{DumpableBehavior, Resource, getrlimit, set_dumpable_behavior, setrlimit};
use server_api::{Archives, Door, Doors, Names};
use server_app::{
    App, JoinTerms, Parts,
    keys::{LinkKeys, SigningKey},
};
use server_llm::{Measured, Model, Models, OpenAi, OpenAiOptions, Practice, Retry, RetryOptions};
use server_store::Outputs;
use shared_program::note;
use shared_telemetry::{MetricsHandle, server, traces::TraceOptions};
use shared_tls::ServerTls;
use shared_types::{Clock, Entropy, OsEntropy, ReplicaId, SystemClock, clean::clean};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

use alone::Alone;
use certificate::Certificate;
use reload::{Origin, Reloader};
use running::Running;
use settings::{Cli, Environment, ModelChoice, Settings, Tls, Verb};
use signals::{Asked, Signals};

/// jemalloc, because it gives memory back: 15 s after 1,000 links had gone at once, glibc still held
/// all of the 79 MiB, jemalloc with its background threads 32 MiB. Memory for each link and the time
/// of an exec are the same with both.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The settings of jemalloc (jemalloc(3), TUNING): two arenas, and freed pages go back after 0.1 s instead of 10 s.
/// While 200 MB of output passed, the server held at most 32 to 33 MiB instead of 37.6, of which its program takes 19.
/// Copies of a file were as fast.
#[expect(unsafe_code, reason = "jemalloc finds its settings by this name")]
// SAFETY: nothing else has this name, which belongs to jemalloc in this program, and jemalloc reads
// the bytes to their NUL and never writes them.
#[unsafe(export_name = "_rjem_malloc_conf")]
static ALLOCATOR_SETTINGS: &[u8; 46] = b"narenas:2,dirty_decay_ms:100,muzzy_decay_ms:0\0";

/// The interval between removals of old samples from the metrics.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// Files and connections that the listener for the metrics alone may take of the process's.
const DESCRIPTORS_FOR_METRICS: usize = 64;

fn main() -> ExitCode {
    // Before anything else: the environment holds a model's key.
    let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let cli = Cli::parse();
    if let Verb::Manual { folder } = &cli.verb {
        return manual(folder);
    }
    let kept = hidden.and_then(|()| match &cli.verb {
        Verb::Run(args) if args.dumpable => set_dumpable_behavior(DumpableBehavior::Dumpable),
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
    if !matches!(cli.verb, Verb::Restore { .. }) {
        restore::require_finished(&folder)?;
    }
    match cli.verb {
        Verb::Run(args) => {
            let origin = Origin {
                args: *args,
                environment,
                config: cli.config,
                home,
            };
            serve(origin).await
        }
        Verb::SignInCode { user } => {
            let database = settings::database(environment, config, &home)?;
            let verb = operator::sign_in_code(&database, &folder, user.as_deref());
            ownership::of_home(&home, verb).await
        }
        Verb::JoinToken {
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
        Verb::CheckConfig(args) => {
            let file = settings::file(config, &home);
            let settings = Settings::resolve(*args, environment, config, &home)?;
            check::check(settings, &file, &folder).await
        }
        Verb::Migrate { check } => {
            let database = settings::database(environment, config, &home)?;
            ownership::of_home(&home, schema::migrate(&database, &folder, check)).await
        }
        Verb::Backup { file } => {
            let database = settings::database(environment, config, &home)?;
            backup::back_up(&database, &folder, &file).await
        }
        Verb::Restore { file } => {
            let database = settings::database(environment, config, &home)?;
            ownership::of_home(&home, restore::restore(&database, &folder, &file)).await
        }
        Verb::Move { to } => {
            let database = settings::database(environment, config, &home)?;
            ownership::of_home(&home, backup::move_to(&database, &to, &home)).await
        }
        Verb::Health => health::health(&folder).await,
        Verb::Reload => reload::run(&folder).await,
        Verb::RotateLinkKey { now } => rotate::rotate(&home, now).await,
        // `main` has done it: it needs no home.
        Verb::Manual { .. } => Ok(()),
    }
}

async fn serve(origin: Origin) -> anyhow::Result<()> {
    let (settings, folder) = (origin.resolve()?, &*origin.folder());
    let (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>) =
        (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
    let replica = ReplicaId::generate(&*clock, &*entropy);
    // Before the logs, which take the spans of requests out of their stream.
    if let Some(traces) = settings.traces {
        let options = TraceOptions {
            endpoint: traces.endpoint,
            sample: traces.sample,
            service: "gantry-server",
            version: env!("CARGO_PKG_VERSION"),
            instance: replica.to_string(),
            sent: &server::SPANS_SENT,
            dropped: &server::SPANS_DROPPED,
        };
        shared_telemetry::traces::install_traces(&options, entropy.clone())?;
    }
    let logs = shared_telemetry::init_logs(
        settings.log_format.parse()?,
        settings.log_filter.as_deref(),
        settings.journal_stream.as_deref(),
        Arc::new(SystemClock::new()),
    )?;
    let metrics = shared_telemetry::install_metrics(server::ALL, env!("CARGO_PKG_VERSION"))?;
    // From here on a signal means to stop in order, however early it comes.
    let mut signals = Signals::listen()?;
    let descriptors = allow_many_descriptors();
    make_private_folder(&folder.join("keys"))?;
    let alone = Alone::in_folder(folder).await?;
    let store = (settings.database)
        .open()
        .await
        .context("failed to open the database")?;
    let outputs = Outputs::open(&folder.join("output"), &store)
        .await
        .context("failed to open the output of commands")?;
    let tls = tls(&settings.tls, folder)?;
    let archives = Archives::in_folder(&settings.downloads)?;
    let listener = TcpListener::bind(settings.listen)
        .await
        .with_context(|| format!("{} cannot be listened on: stop what uses it, or choose another with --listen or GANTRY_LISTEN", settings.listen))?;
    let address = listener.local_addr()?;
    let for_metrics = match settings.metrics {
        Some(address) => Some(listen_for_metrics(address).await?),
        None => None,
    };

    let stop = CancellationToken::new();
    let app = App::start(Parts {
        store,
        outputs,
        models: models(settings.model, &clock, &entropy)?,
        operator: settings.defaults,
        model_window: settings.model_window,
        identity: SigningKey::load_or_create(&folder.join("keys/identity.pem"), &*entropy)?,
        link_keys: LinkKeys::load(&folder.join("keys"), &*clock, &*entropy)?,
        link: settings.link,
        ephemeral_silence: settings.ephemeral_silence,
        turns: settings.turns,
        isolation: Arc::new(settings.isolation),
        user_limits: settings.user_limits,
        replica,
        place: alone.place(clock.boot())?,
        clock: clock.clone(),
        entropy: entropy.clone(),
        stop: stop.clone(),
    })
    .await?;

    let certificate = tls.as_ref().map(ServerTls::certificate_sha256);
    let running = Running::here(address, certificate);
    running.tell(folder)?;

    let metrics_at = for_metrics.as_ref().map(TcpListener::local_addr);
    announce(&app, address, metrics_at.transpose()?, tls.as_ref()).await?;
    if settings.behind_proxy && settings.names.is_empty() {
        tracing::warn!(
            "no names are set under [server] in gantry.toml: requests are answered only where their host is an address, localhost or this machine's name"
        );
    }
    let certificate = Certificate::of(settings.tls, settings.names);
    let names: Names = names(certificate.names(), tls.as_ref())
        .into_iter()
        .collect();
    let doors = Doors {
        app: Arc::new(app.clone()),
        metrics: metrics.clone(),
        archives,
        limits: settings.limits,
        names: names.clone(),
        https: tls.is_some() || settings.behind_proxy,
        entropy: entropy.clone(),
    };
    let tls = tls.map(watch::Sender::new);
    tokio::spawn(upkeep(metrics));
    let alone = for_metrics.map(|listener| {
        let door = Door {
            listener,
            tls: None,
            limits: settings.limits,
            client_address: None,
            descriptors: DESCRIPTORS_FOR_METRICS,
        };
        let routes = server_api::metrics_router(doors.clone());
        tokio::spawn(server_api::serve(door, routes, stop.clone()))
    });
    let door = Door {
        listener,
        tls: tls.as_ref().map(watch::Sender::subscribe),
        limits: settings.limits,
        client_address: settings.client_address,
        descriptors,
    };
    let serving = tokio::spawn(server_api::serve(
        door,
        server_api::router(doors),
        stop.clone(),
    ));
    let mut reloader = Reloader {
        origin,
        started_with: settings.written,
        logs,
        names,
        certificate,
        tls,
        app: app.clone(),
        clock,
        entropy,
        running,
    };
    loop {
        tokio::select! {
            asked = signals.next() => match asked {
                Asked::Reload => reloader.reload().await,
                Asked::Stop => break,
            },
            () = tokio::time::sleep(certificate::LOOK_EVERY) => reloader.renew(),
        }
    }
    app.leave();
    tracing::info!(drain_ms = settings.drain.as_millis() as u64, "stopping");
    tokio::select! {
        () = tokio::time::sleep(settings.drain) => {}
        () = signals.stop() => {}
    }
    stop.cancel();
    let stopped = async {
        serving.await?;
        if let Some(alone) = alone {
            alone.await?;
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

async fn listen_for_metrics(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("{address} cannot be listened on for the metrics: stop what uses it, or choose another with --metrics or GANTRY_METRICS"))
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
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = Some(host.trim().to_owned()).filter(|host| !host.is_empty());
    let local = host.iter().map(|host| format!("{host}.local"));
    let of_certificate = tls.into_iter().flat_map(ServerTls::names).cloned();
    let names = set.into_iter().chain(of_certificate).chain(local);
    names.chain(host.clone()).collect()
}

/// Prints on standard output, one thing a line, the facts that a person or `make up` needs next. The server also serves
/// if no reader listens.
async fn announce(
    app: &App,
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    tls: Option<&ServerTls>,
) -> anyhow::Result<()> {
    let first = app.access.bootstrap().await?;
    let mut lines = String::new();
    if !app.access.has_signed_in(first.tenant, first.owner).await? {
        let code = app.access.issue_code(first.tenant, first.owner).await?;
        lines += &format!("sign-in code: {code}\n");
    }
    if let Some(tls) = tls {
        let digest = shared_types::Digest::from_slice(&tls.certificate_sha256())
            .context("a SHA-256 has 32 bytes")?;
        lines += &format!("certificate: {digest}\n");
    }
    if let Some(metrics) = metrics {
        lines += &format!("metrics on http://{metrics}/metrics\n");
    }
    let scheme = if tls.is_some() { "https" } else { "http" };
    lines += &format!("listening on {scheme}://{address}\n");
    let mut stdout = std::io::stdout().lock();
    let _ = stdout
        .write_all(lines.as_bytes())
        .and_then(|()| stdout.flush());
    tracing::info!(url = %format_args!("{scheme}://{address}"), model = app.model().name, "listening");
    Ok(())
}

fn models(
    choice: ModelChoice,
    clock: &Arc<dyn Clock>,
    entropy: &Arc<dyn Entropy>,
) -> anyhow::Result<Models> {
    let (first, others) = match choice {
        ModelChoice::Practice => {
            let practice = Measured::new(Practice, clock.clone());
            return Ok(Models::new(Arc::new(practice), []));
        }
        ModelChoice::OpenAi(first, others) => (*first, others),
    };
    let others = others.into_iter().map(|model| OpenAiOptions {
        model,
        ..first.clone()
    });
    let others: anyhow::Result<Vec<_>> = others
        .map(|options| vendor(options, clock, entropy))
        .collect();
    Ok(Models::new(vendor(first, clock, entropy)?, others?))
}

fn vendor(
    options: OpenAiOptions,
    clock: &Arc<dyn Clock>,
    entropy: &Arc<dyn Entropy>,
) -> anyhow::Result<Arc<dyn Model>> {
    let vendor = OpenAi::new(options)
        .context("OPENAI_BASE_URL, or base_url under [model], cannot be used")?;
    let retry = RetryOptions::default();
    let retry = Retry::new(vendor, retry, entropy.clone());
    Ok(Arc::new(Measured::new(retry, clock.clone())))
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

/// Every connection and every file takes a descriptor, and many systems allow 1024 unless asked.
/// Returns how many there may be.
fn allow_many_descriptors() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the number of open files stays limited");
    }
    let allowed = getrlimit(Resource::Nofile).current;
    allowed.map_or(usize::MAX, |allowed| {
        usize::try_from(allowed).unwrap_or(usize::MAX)
    })
}
