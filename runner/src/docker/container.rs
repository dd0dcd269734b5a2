//! One sandbox of the pool: a container that is made and started when something is to happen there.
//!
//! The container itself holds nothing that has to stay: its root cannot be written, its files lie in volumes with
//! its name. So where anything is wrong with a container, another one is made, and goes on with the files.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use runner_host::{Account, Inhabited, Inside};
use runner_supervisor::{
    KillChoice, KillMethod, ORDERS, Order, Orders, PROGRAMS_LOCK, Realm, User,
};
use rustix::fs::FlockOperation;
use shared_link::runner::SandboxReport;
use shared_types::{Refusal, RefusalCode, SandboxId, SandboxPrivilege, SandboxSpec, SandboxState};
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::{Instant, sleep, timeout},
};

use super::{
    Surroundings,
    door::Door,
    engine::{self, Engine, EngineError, Found, Make},
};
use crate::processes::{ProcessOptions, Processes};

/// The directory where commands and relative paths begin; a volume.
const WORKSPACE: &str = "/workspace";

/// The home of the commands' user; a volume.
const HOME: &str = "/home/user";

/// Our own folder in a container: programs, and the folder of the operations, which is root's alone.
const OURS: &str = "/.gantry";

/// The path of our `sudo`, where the template has it: commands find it before a `sudo` of the image.
const SUDO: &str = "/usr/local/bin/sudo";

/// Behind what a container was made for, where its commands may be root.
const WITH_SUDO: &str = " sudo";

/// The user and the group of commands.
const ACCOUNT: Account = Account {
    uid: 1000,
    gid: 1000,
};

/// Supervisors that wait for a command in each container that runs.
const SUPERVISORS_WAITING: usize = 2;

/// The longest wait until an entry process listens.
const LISTENS_WITHIN: Duration = Duration::from_secs(15);

/// The time between two looks if it does.
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// The wait at the door before the engine is asked if the container still runs.
const ASK_AFTER: Duration = Duration::from_millis(200);

/// The number of looks after which the engine is asked if the container still runs.
const ASK_EVERY: u32 = 64;

/// The longest wait for an earlier daemon's file helper to end: it is in the middle of a change then.
const HELPERS_END_WITHIN: Duration = Duration::from_secs(10);

/// The reason why a sandbox does not run whose template policy forbids.
const SUDO_IS_FORBIDDEN: &str = "its template gives commands root (sudo), and the tenant's or the operator's policy \
    forbids that; choose another template (gantry sandboxes set NAME --template TEMPLATE), or have an admin allow \
    it (gantry config set --tenant sudo allow)";

/// The wait before a failed removal is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(3);

/// The file in the folder of a sandbox that says whose it is, and what it is to be.
const NOTE: &str = "sandbox.json";

/// See the module. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Container(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    id: SandboxId,
    /// By which its container, its volumes and its folder are named: `id`, but of one that was made in advance.
    body: SandboxId,
    around: Arc<Surroundings>,
    folder: PathBuf,
    spec: Mutex<SandboxSpec>,
    /// The reason in the last report.
    told: Mutex<String>,
    /// One writes the note at a time.
    noting: Mutex<()>,
    /// Held while a task does something with the container itself.
    life: tokio::sync::Mutex<()>,
    running: Mutex<Option<Running>>,
    /// When something happened there last, on the clock that goes on while the host is suspended.
    used_at: Mutex<Duration>,
    /// It was removed, or became a sandbox; another one may have its id by now.
    gone: AtomicBool,
    /// It is no sandbox yet, and may be none ever: the server does not know it.
    is_spare: bool,
    /// The removal of the one that had its id before.
    after: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

/// The note about a sandbox in its folder.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Note {
    /// The sandbox; a spare container is none.
    pub(super) sandbox: Option<SandboxId>,
    /// It is being removed with its files.
    #[serde(default)]
    pub(super) removed: bool,
    /// Its specification.
    pub(super) spec: SandboxSpec,
    /// The reason why it stopped, or did not start; empty where it runs.
    #[serde(default)]
    pub(super) why: String,
}

/// The parts of a container while it runs. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    /// Runs its commands.
    pub(crate) processes: Processes,
    /// Serves its files.
    pub(crate) files: Inside,
    /// The facts about it.
    pub(crate) inhabited: Arc<Inhabited>,
    /// The privilege that its commands have.
    pub(crate) privilege: SandboxPrivilege,
}

impl Container {
    /// A sandbox with this specification; nothing is started. Where its folder cannot be written, the next daemon
    /// does not know it, and gets its specification from the server again.
    pub(super) fn new(
        id: SandboxId,
        spec: SandboxSpec,
        around: Arc<Surroundings>,
        after: Option<JoinHandle<()>>,
    ) -> Self {
        let container = Self::with_body((id, id), spec, around, false);
        if let Ok(mut removal) = container.0.after.try_lock() {
            *removal = after;
        }
        container.note();
        container
    }

    /// One that is no sandbox: it is tried out, or waits to become one.
    pub(super) fn spare(spec: SandboxSpec, around: Arc<Surroundings>) -> Self {
        let id = SandboxId::generate(&*around.clock, &*around.entropy);
        let container = Self::with_body((id, id), spec, around, true);
        container.note();
        container
    }

    /// One that an earlier daemon has noted in the folder of this body.
    pub(super) fn again(body: SandboxId, note: Note, around: Arc<Surroundings>) -> Self {
        let is_spare = note.sandbox.is_none();
        let id = note.sandbox.unwrap_or(body);
        let container = Self::with_body((id, body), note.spec, around, is_spare);
        *lock(&container.0.told) = note.why;
        container
    }

    fn with_body(
        (id, body): (SandboxId, SandboxId),
        spec: SandboxSpec,
        around: Arc<Surroundings>,
        is_spare: bool,
    ) -> Self {
        let folder = around.root.join(body.to_string());
        let used_at = Mutex::new(around.clock.boot_time());
        Self(Arc::new(Shared {
            id,
            body,
            around,
            folder,
            spec: Mutex::new(spec),
            told: Mutex::default(),
            noting: Mutex::default(),
            life: tokio::sync::Mutex::default(),
            running: Mutex::default(),
            used_at,
            gone: AtomicBool::new(false),
            is_spare,
            after: tokio::sync::Mutex::default(),
        }))
    }

    /// Makes this spare one, which runs, the sandbox `id`; `None` where it differs from the spec, does not
    /// run, or that cannot be noted.
    pub(super) fn become_sandbox(&self, id: SandboxId, spec: &SandboxSpec) -> Option<Self> {
        // A start that is under way writes the note too.
        let _life = self.0.life.try_lock().ok()?;
        let running = lock(&self.0.running).clone()?;
        let mut named_alike = SandboxSpec {
            name: spec.name.clone(),
            ..lock(&self.0.spec).clone()
        };
        if running.privilege == SandboxPrivilege::Strict {
            named_alike.may_sudo = spec.may_sudo;
        }
        if named_alike != *spec {
            return None;
        }
        let around = Arc::clone(&self.0.around);
        let sandbox = Self::with_body((id, self.0.body), spec.clone(), around, false);
        self.0.gone.store(true, Ordering::Relaxed);
        // Before anything is put into its volumes, which are found by this alone.
        if let Err(error) = sandbox.try_to_note() {
            tracing::warn!(%error, "failed to note a sandbox");
            self.0.gone.store(false, Ordering::Relaxed);
            return None;
        }
        *lock(&sandbox.0.running) = Some(running);
        Some(sandbox)
    }

    /// True if it was removed, or became another one.
    fn is_gone(&self) -> bool {
        self.0.gone.load(Ordering::Relaxed)
    }

    /// The id by which its container, its volumes and its folder are named.
    pub(super) fn body(&self) -> SandboxId {
        self.0.body
    }

    /// The id of the sandbox.
    pub(super) fn id(&self) -> SandboxId {
        self.0.id
    }

    /// True if it is no sandbox.
    pub(super) fn is_spare(&self) -> bool {
        self.0.is_spare
    }

    /// True if it is made from this template.
    pub(super) fn is_made_from(&self, template: &str) -> bool {
        lock(&self.0.spec).template == template
    }

    /// The body in a folder, and what is noted there; `None` where there is none.
    pub(super) fn noted(folder: &Path) -> Option<(SandboxId, Note)> {
        let body = folder.file_name()?.to_str()?.parse().ok()?;
        let text = fs::read(folder.join(NOTE)).ok()?;
        Some((body, serde_json::from_slice(&text).ok()?))
    }

    /// The folder of what is known of it.
    #[cfg(test)]
    pub(super) fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// The folder of its operations.
    pub(super) fn operations(&self) -> PathBuf {
        self.0.folder.join("operations")
    }

    /// It is to be like this from its next start on. One whose commands may be root, and may not any more, is
    /// stopped.
    pub(super) fn become_like(&self, spec: SandboxSpec) {
        let may_sudo = spec.may_sudo;
        let changed = {
            let mut before = lock(&self.0.spec);
            let changed = *before != spec;
            *before = spec;
            changed
        };
        if changed {
            self.note();
        }
        let running = lock(&self.0.running).clone();
        if !may_sudo && running.is_some_and(|one| one.privilege == SandboxPrivilege::Sudo) {
            self.forget_running();
            let container = self.clone();
            tokio::spawn(async move { container.stop(SUDO_IS_FORBIDDEN).await });
        }
    }

    fn try_to_note(&self) -> io::Result<()> {
        let _noting = lock(&self.0.noting);
        let note = Note {
            sandbox: Some(self.0.id).filter(|_| !self.0.is_spare && !self.is_gone()),
            removed: self.is_gone(),
            spec: lock(&self.0.spec).clone(),
            why: lock(&self.0.told).clone(),
        };
        make_folder(&self.0.folder)?;
        make_folder(&self.operations())?;
        let new = self.0.folder.join("sandbox.json.new");
        let mut file = fs::File::create(&new)?;
        file.write_all(&serde_json::to_vec(&note)?)?;
        file.sync_data()?;
        fs::rename(new, self.0.folder.join(NOTE))?;
        // A host that dies must not come back with the note before: a spare one's files are removed.
        fs::File::open(&self.0.folder)?.sync_all()
    }

    fn note(&self) {
        if let Err(error) = self.try_to_note() {
            tracing::warn!(%error, sandbox.id = %self.0.id, "failed to note a sandbox; the server tells of it again");
        }
    }

    /// Its parts, where it is known to run.
    pub(crate) fn running(&self) -> Option<Running> {
        let running = lock(&self.0.running);
        if running.is_some() {
            // Before the lock is gone: nothing that is about to happen there is taken for idle.
            self.is_used();
        }
        running.clone()
    }

    /// Something happens there.
    pub(super) fn is_used(&self) {
        *lock(&self.0.used_at) = self.0.around.clock.boot_time();
    }

    /// True if it runs and nothing has happened there for as long as it may be idle. It is about to be stopped then,
    /// and an operation from now on starts it again.
    pub(super) fn falls_idle(&self) -> bool {
        let idle_for = lock(&self.0.spec).limits.idle_for();
        let mut running = lock(&self.0.running);
        let used_at = *lock(&self.0.used_at);
        let now = self.0.around.clock.boot_time();
        now.saturating_sub(used_at) >= idle_for && running.take().is_some()
    }

    /// It is about to be stopped: an operation from now on starts it again.
    pub(super) fn forget_running(&self) {
        lock(&self.0.running).take();
    }

    /// True if it is believed to run.
    pub(super) fn seems_to_run(&self) -> bool {
        lock(&self.0.running).is_some()
    }

    /// Waits until it runs, and starts it where it does not.
    ///
    /// # Errors
    /// The reason why it cannot run; nothing of the operation was done.
    pub(crate) async fn ready(&self) -> Result<Running, Refusal> {
        if let Some(running) = self.running()
            && self.listens().await
        {
            return Ok(running);
        }
        let _life = self.0.life.lock().await;
        let mut why = String::new();
        if let Some(running) = self.running() {
            if self.listens().await {
                return Ok(running);
            }
            lock(&self.0.running).take();
            why = self.why_it_stopped().await;
        }
        if let Some(removal) = self.0.after.lock().await.take() {
            // One that panicked has removed what it could.
            let _ = removal.await;
        }
        if self.is_gone() {
            let message = "the sandbox was removed; send the operation again";
            return Err(Refusal::new(RefusalCode::Unavailable, message));
        }
        let started = match self.start(&why).await {
            Ok(running) => {
                *lock(&self.0.running) = Some(running.clone());
                let stopped = self.stop_if_forbidden(&running).await;
                stopped.map(|()| running)
            }
            Err(reason) => Err(reason),
        };
        match started {
            Ok(running) => {
                self.is_used();
                self.report(SandboxState::Running, "");
                Ok(running)
            }
            Err(reason) => {
                tracing::warn!(sandbox.id = %self.0.id, reason, "failed to start a sandbox");
                self.report(SandboxState::Failed, &reason);
                let name = lock(&self.0.spec).name.clone();
                let message = format!("sandbox {name:?} cannot be started: {reason}");
                Err(Refusal::new(RefusalCode::Unavailable, message))
            }
        }
    }

    /// Stops a container that has just started, where policy has come to forbid its root in that time.
    async fn stop_if_forbidden(&self, running: &Running) -> Result<(), String> {
        let may_sudo = lock(&self.0.spec).may_sudo;
        if may_sudo || running.privilege == SandboxPrivilege::Strict {
            return Ok(());
        }
        self.forget_running();
        let told = |error: EngineError| error.to_string();
        let engine = self.0.around.engine().await.map_err(told)?;
        engine.stop(self.0.body).await.map_err(told)?;
        Err(SUDO_IS_FORBIDDEN.to_owned())
    }

    /// `why`: what had stopped it, where it was taken to run.
    async fn start(&self, why: &str) -> Result<Running, String> {
        let told = |error: EngineError| error.to_string();
        let id = self.0.body;
        let engine = self.0.around.engine().await.map_err(told)?;
        let spec = lock(&self.0.spec).clone();
        let make = self.make(&spec);
        let found = engine.find(id).await.map_err(told)?;
        if matches!(found, Found::Container { paused: true, .. }) {
            return Err(self.is_paused());
        }
        let mut runs_as = match &found {
            Found::Container {
                running: true,
                made_for,
                ..
            } => Some(privilege_of(made_for)),
            _ => None,
        };
        let gives_sudo =
            matches!(&make, Ok(make) if make.privilege == SandboxPrivilege::Sudo && spec.may_sudo);
        // A container with root goes on only where its template still gives root, policy allows it, and this daemon
        // or one before has started it. A container that was started by hand begins with files that its root has
        // left there.
        if runs_as == Some(SandboxPrivilege::Sudo) && !(gives_sudo && self.listens().await) {
            runs_as = None;
            // Another one takes its place, where one can be made.
            if make.is_err() {
                engine.stop(id).await.map_err(told)?;
            }
        }
        let make = make?;
        self.note();
        let privilege = runs_as.unwrap_or(make.privilege);
        if runs_as.is_none() {
            // Where root could change it a container is used once.
            let is_as_made = matches!(&found, Found::Container { made_for, .. }
                if *made_for == make.made_for && privilege == SandboxPrivilege::Strict);
            if !is_as_made {
                if found != Found::Nothing {
                    engine.remove(id).await.map_err(told)?;
                }
                self.make_anew(&make, why).await.map_err(told)?;
            }
            self.report(SandboxState::Starting, why);
            let door = match privilege {
                SandboxPrivilege::Strict => None,
                SandboxPrivilege::Sudo => Some(self.door()?),
            };
            engine.start(id).await.map_err(told)?;
            if let Some(door) = door {
                self.let_in(door).await?;
            }
        }
        self.until_it_listens().await?;
        self.until_no_helper_is_left().await?;
        let (processes, (files, shell)) = tokio::try_join!(self.processes(), self.files())?;
        let environment = BTreeMap::from(
            [
                (
                    "PATH",
                    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                ),
                ("HOME", HOME),
                ("USER", "user"),
                ("LANG", "C.UTF-8"),
                ("SHELL", shell.as_deref().unwrap_or("/bin/sh")),
                ("TMPDIR", "/tmp"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        Ok(Running {
            processes,
            files,
            inhabited: Arc::new(Inhabited {
                root: WORKSPACE.into(),
                environment,
                shell,
                account: ACCOUNT,
            }),
            privilege,
        })
    }

    fn door(&self) -> Result<Door, String> {
        let opened = Door::open(&self.0.folder, &self.operations());
        opened.map_err(|error| {
            format!(
                "the folder of its operations cannot be handed to it ({error}); a template with sudo needs a \
                 runner with the rights of root on its host (CAP_SYS_ADMIN), not one in a container"
            )
        })
    }

    /// Hands the entry process the folder of the operations.
    async fn let_in(&self, door: Door) -> Result<(), String> {
        let until = Instant::now() + LISTENS_WITHIN;
        loop {
            match timeout(ASK_AFTER, door.let_in()).await {
                Ok(let_in) => return let_in.map_err(|error| error.to_string()),
                Err(_) if Instant::now() < until && self.runs().await? => {}
                Err(_) => return Err(self.does_not_listen().await?),
            }
        }
    }

    async fn runs(&self) -> Result<bool, String> {
        let engine = self.0.around.engine().await;
        let engine = engine.map_err(|error| error.to_string())?;
        let found = engine.find(self.0.body).await;
        Ok(matches!(found, Ok(Found::Container { running: true, .. })))
    }

    async fn does_not_listen(&self) -> Result<String, String> {
        let engine = self.0.around.engine().await;
        let engine = engine.map_err(|error| error.to_string())?;
        let said = engine.last_words(self.0.body).await;
        Ok(format!(
            "its entry process does not listen at {ORDERS:?}; it said: {said:?}"
        ))
    }

    async fn make_anew(&self, make: &Make, why: &str) -> Result<(), EngineError> {
        self.report(SandboxState::Starting, why);
        self.0.around.engine().await?.make(make).await
    }

    fn make(&self, spec: &SandboxSpec) -> Result<Make, String> {
        let around = &self.0.around;
        let template = around.template(&spec.template).ok_or_else(|| {
            let known: Vec<_> = around.template_names().collect();
            format!(
                "this runner has no template {:?}, only: {}",
                spec.template,
                known.join(", ")
            )
        })?;
        let privilege = template.privilege;
        if privilege == SandboxPrivilege::Sudo && !spec.may_sudo {
            return Err(SUDO_IS_FORBIDDEN.to_owned());
        }
        let program = |name: &str| format!("{OURS}/bin/{name}");
        let Account { uid, gid } = ACCOUNT;
        let there = |path: &Path| around.as_the_engine_sees(path);
        let mut binds = vec![
            (
                there(&around.supervisor)?,
                program("gantry-supervisor"),
                true,
            ),
            (there(&around.files)?, program("gantry-files"), true),
        ];
        let mut entry = vec![
            program("gantry-supervisor"),
            KillMethod::Sweep.as_str().to_owned(),
        ];
        let directory = match privilege {
            SandboxPrivilege::Strict => {
                let operations = format!("{OURS}/operations");
                binds.push((there(&self.operations())?, operations.clone(), false));
                entry.push("entry".to_owned());
                operations
            }
            SandboxPrivilege::Sudo => {
                let door = Door::folder(&self.0.folder);
                make_folder(&door).map_err(|error| error.to_string())?;
                binds.push((there(&door)?, format!("{OURS}/door"), true));
                binds.push((there(&around.supervisor)?, SUDO.to_owned(), true));
                entry.push("entry-with-sudo".to_owned());
                entry.push(format!("{OURS}/door/{}", Door::NAME));
                "/".to_owned()
            }
        };
        entry.extend([
            format!("{uid}:{gid}"),
            WORKSPACE.to_owned(),
            HOME.to_owned(),
        ]);
        let image = &template.image;
        let mut made_for = format!("{image} {} {:?} {binds:?}", spec.network, spec.limits);
        if privilege == SandboxPrivilege::Sudo {
            made_for.push_str(WITH_SUDO);
        }
        Ok(Make {
            sandbox: self.0.body,
            image: image.to_owned(),
            limits: spec.limits,
            network: spec.network,
            privilege,
            entry,
            directory,
            binds,
            volumes: vec![
                ("workspace", WORKSPACE.to_owned()),
                ("home", HOME.to_owned()),
            ],
            made_for,
        })
    }

    /// True if its entry process takes orders, which it does as long as the container runs.
    async fn listens(&self) -> bool {
        let operations = self.operations();
        let listens = spawn_blocking(move || Orders::listens(&operations));
        listens.await.unwrap_or(false)
    }

    async fn until_it_listens(&self) -> Result<(), String> {
        let until = Instant::now() + LISTENS_WITHIN;
        for look in 1.. {
            if self.listens().await {
                return Ok(());
            }
            let asks = look % ASK_EVERY == 0;
            if (asks || Instant::now() > until) && (!self.runs().await? || Instant::now() > until) {
                return Err(self.does_not_listen().await?);
            }
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Two helpers must never work at once: each keeps apart only the changes that are its own.
    async fn until_no_helper_is_left(&self) -> Result<(), String> {
        let lock = self.operations().join(PROGRAMS_LOCK);
        let until = Instant::now() + HELPERS_END_WITHIN;
        loop {
            let file = lock.clone();
            let locked = spawn_blocking(move || -> io::Result<()> {
                let file = fs::File::options()
                    .create(true)
                    .truncate(false)
                    .write(true)
                    .open(file)?;
                let exclusive = FlockOperation::NonBlockingLockExclusive;
                Ok(rustix::fs::flock(&file, exclusive)?)
            });
            match locked.await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(Err(error)) => return Err(error.to_string()),
                Err(error) => return Err(error.to_string()),
            }
            if Instant::now() > until {
                return Err("an earlier file helper does not end in it; stop the sandbox".into());
            }
            sleep(LOOK_EVERY).await;
        }
    }

    async fn processes(&self) -> Result<Processes, String> {
        let options = ProcessOptions {
            supervisor: self.0.around.supervisor.clone(),
            root: self.operations(),
            waiting: SUPERVISORS_WAITING,
            kill: KillChoice::Only(KillMethod::Sweep),
            realm: Realm::Container,
        };
        let around = &self.0.around;
        let begun = Processes::begin(options, Arc::clone(&around.clock), &*around.entropy).await;
        begun.map_err(|error| format!("{:#}", anyhow::Error::from(error)))
    }

    async fn files(&self) -> Result<(Inside, Option<String>), String> {
        let operations = self.operations();
        let Account { uid, gid } = ACCOUNT;
        let order = Order::Program {
            argv: [format!("{OURS}/bin/gantry-files"), WORKSPACE.to_owned()].to_vec(),
            user: User { uid, gid },
        };
        let given = spawn_blocking(move || Orders::connect(&operations)?.give(&order)).await;
        let socket = given
            .map_err(io::Error::other)
            .and_then(|given| given)
            .map_err(|error| format!("its file helper cannot be started: {error}"))?;
        let connected = Inside::connect(socket).await;
        let (files, hello) =
            connected.map_err(|error| format!("its file helper does not answer: {error}"))?;
        Ok((files, hello.shell))
    }

    /// Stops it, with the commands that run there. An operation that comes in that time waits, and starts it again.
    pub(super) async fn stop(&self, reason: &str) {
        self.forget_running();
        let _life = self.0.life.lock().await;
        // A start that was under way has just come to its end.
        self.forget_running();
        self.stop_now(reason).await;
    }

    /// Stops one that has fallen idle, unless something came before and has it run again.
    pub(super) async fn rest(&self) {
        let _life = self.0.life.lock().await;
        if !self.seems_to_run() {
            self.stop_now("it was idle").await;
        }
    }

    async fn stop_now(&self, reason: &str) {
        let stopped = match self.0.around.engine().await {
            Ok(engine) => engine.stop(self.0.body).await,
            Err(error) => Err(error),
        };
        match stopped {
            Ok(()) => {
                tracing::info!(sandbox.id = %self.0.id, reason, "a sandbox is stopped");
                self.report(SandboxState::Stopped, reason);
            }
            Err(error) => {
                tracing::warn!(sandbox.id = %self.0.id, %error, "failed to stop a sandbox");
                self.report(
                    SandboxState::Failed,
                    &format!("it cannot be stopped: {error}"),
                );
            }
        }
    }

    /// Removes it with its files, once; whether it is gone. What is kept of its commands stays until the server
    /// has it.
    pub(super) async fn remove(&self) -> bool {
        if !self.0.gone.swap(true, Ordering::Relaxed) {
            // The next daemon goes on with it, should this one die before it is done.
            self.note();
        }
        lock(&self.0.running).take();
        let _life = self.0.life.lock().await;
        if let Some(removal) = self.0.after.lock().await.take() {
            let _ = removal.await;
        }
        let (id, body) = (self.0.id, self.0.body);
        let removed = async {
            let engine = self.0.around.engine().await?;
            engine.remove(body).await?;
            engine.remove_volume(body, "workspace").await?;
            engine.remove_volume(body, "home").await
        };
        match removed.await {
            Ok(()) => {
                let _ = fs::remove_file(self.0.folder.join(NOTE));
                self.remove_folders();
                tracing::info!(sandbox.id = %id, "a sandbox is removed");
                true
            }
            Err(error) => {
                tracing::warn!(sandbox.id = %id, %error, "failed to remove a sandbox; trying again");
                false
            }
        }
    }

    /// Removes it with its files, however long that takes.
    pub(super) async fn remove_at_last(&self) {
        while !self.remove().await {
            sleep(TRY_AGAIN_AFTER).await;
        }
    }

    /// Removes the folders where nothing is left of its commands.
    fn remove_folders(&self) {
        let operations = self.operations();
        for file in [ORDERS, PROGRAMS_LOCK] {
            let _ = fs::remove_file(operations.join(file));
        }
        Door::remove(&self.0.folder);
        let _ = fs::remove_dir(operations).and_then(|()| fs::remove_dir(&self.0.folder));
    }

    /// Removes a spare one of an earlier daemon. Where there is something in its workspace, that daemon has
    /// made it a sandbox, and this runner's home is an older copy: then its volumes stay.
    pub(super) async fn remove_unless_used(&self) {
        while let Err(error) = self.try_to_remove_unless_used().await {
            tracing::warn!(%error, "failed to look into a spare container; trying again");
            sleep(TRY_AGAIN_AFTER).await;
        }
    }

    async fn try_to_remove_unless_used(&self) -> Result<(), EngineError> {
        let body = self.0.body;
        let engine = self.0.around.engine().await?;
        let is_empty = match engine.is_empty(body, WORKSPACE).await {
            // It cannot be mounted any more: it was made with the programs of an earlier version, which are gone.
            Err(EngineError::Refused(reason)) => self.is_empty_anew(&engine, reason).await?,
            other => other?,
        };
        if is_empty {
            self.remove_at_last().await;
            return Ok(());
        }
        engine.remove(body).await?;
        let _ = fs::remove_file(self.0.folder.join(NOTE));
        tracing::warn!(
            volumes = format!("gantry-{body}-*"),
            "a container that was noted as spare has files, or is gone; its volumes stay"
        );
        Ok(())
    }

    /// Looks into its workspace with another container that is made for the same volumes.
    async fn is_empty_anew(&self, engine: &Engine, reason: String) -> Result<bool, EngineError> {
        let spec = lock(&self.0.spec).clone();
        let Ok(make) = self.make(&spec) else {
            tracing::debug!(
                reason,
                "a spare container of a template that is gone is not looked into"
            );
            return Ok(false);
        };
        engine.remove(self.0.body).await?;
        engine.make(&make).await?;
        engine.is_empty(self.0.body, WORKSPACE).await
    }

    /// Goes on with a container that an earlier daemon has left running.
    pub(super) async fn go_on(&self) {
        if self.seems_to_run() {
            return;
        }
        if self.listens().await {
            // A failure is reported.
            let _ = self.ready().await;
        } else if lock(&self.0.told).is_empty()
            && let Ok(_life) = self.0.life.try_lock()
        {
            // It stopped while no daemon was there.
            let reason = self.why_it_stopped().await;
            self.report(SandboxState::Stopped, &reason);
        }
    }

    /// Looks whether a container that is taken to run does, and tells what has changed. `paused`: whether the engine
    /// says that it is paused, or why the engine says nothing.
    pub(super) async fn check(&self, paused: Result<bool, &EngineError>) {
        let told = lock(&self.0.told).clone();
        let was_kept = told == self.is_paused() || told == EngineError::Away.to_string();
        let may_go_on = was_kept && matches!(paused, Ok(false));
        if !(self.seems_to_run() || may_go_on) {
            return;
        }
        // The task that stops or starts it now knows better.
        let Ok(life) = self.0.life.try_lock() else {
            return;
        };
        let listens = self.listens().await;
        match (self.seems_to_run(), paused) {
            (true, Ok(true)) => self.has_stopped(&self.is_paused()),
            (true, _) if !listens => {
                let reason = self.why_it_stopped().await;
                self.has_stopped(&reason);
            }
            (true, Err(error)) if told != error.to_string() => {
                self.report(SandboxState::Running, &error.to_string());
            }
            (true, Ok(false)) if !told.is_empty() => self.report(SandboxState::Running, ""),
            // The reason why it did not run is over, or is known only now.
            (false, Ok(false)) if was_kept && listens => {
                drop(life);
                self.go_on().await;
            }
            (false, Ok(false)) if was_kept => {
                let reason = self.why_it_stopped().await;
                self.report(SandboxState::Stopped, &reason);
            }
            _ => {}
        }
    }

    fn has_stopped(&self, reason: &str) {
        if lock(&self.0.running).take().is_none() {
            return;
        }
        tracing::warn!(sandbox.id = %self.0.id, reason, "a sandbox has stopped");
        self.report(SandboxState::Stopped, reason);
    }

    /// The reason of one whose container is paused: nothing in it takes or answers anything.
    fn is_paused(&self) -> String {
        let name = engine::name(self.0.body);
        format!("its container is paused: run `docker unpause {name}` on the runner's host")
    }

    /// The reason why a container does not run that was believed to.
    async fn why_it_stopped(&self) -> String {
        let found = match self.0.around.engine().await {
            Ok(engine) => engine.find(self.0.body).await,
            Err(error) => Err(error),
        };
        match found {
            Ok(Found::Nothing) => {
                "its container was removed by hand; the next operation makes another one with the same files"
                    .to_owned()
            }
            Ok(Found::Container {
                out_of_memory: true,
                ..
            }) => "its memory was used up".to_owned(),
            Ok(Found::Container { exit_code, .. }) => {
                format!("its container ended (exit code {exit_code}): it was stopped by hand, or its engine was")
            }
            Err(error) => error.to_string(),
        }
    }

    /// Tells of one that an earlier daemon has noted, and has not been looked at yet.
    pub(super) fn report_again(&self) {
        let why = lock(&self.0.told).clone();
        self.report(SandboxState::Stopped, &why);
    }

    pub(super) fn report(&self, state: SandboxState, reason: &str) {
        if self.0.is_spare {
            return;
        }
        let before = std::mem::replace(&mut *lock(&self.0.told), reason.to_owned());
        // The next daemon reports why it does not run; the state of a running one it finds out again.
        let is_at_rest = matches!(state, SandboxState::Stopped | SandboxState::Failed);
        if before != reason && (is_at_rest || state == SandboxState::Running) {
            self.note();
        }
        let running = lock(&self.0.running).as_ref().map(|one| one.privilege);
        let template = lock(&self.0.spec).template.clone();
        self.0.around.reports.add(SandboxReport {
            sandbox: self.0.id,
            state,
            reason: reason.to_owned(),
            privilege: running.unwrap_or_else(|| self.0.around.privilege(&template)),
        });
    }
}

/// The privilege that the commands of a container have, by what it was made for.
fn privilege_of(made_for: &str) -> SandboxPrivilege {
    match made_for.ends_with(WITH_SUDO) {
        true => SandboxPrivilege::Sudo,
        false => SandboxPrivilege::Strict,
    }
}

/// Makes a folder for this user alone, with its parents, where it is missing.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
