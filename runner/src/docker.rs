//! A pool of sandboxes that are containers of a Docker engine on this host.
//!
//! The server says what each is to be, once; the containers are made and started when something is to happen
//! there, and stopped when nothing has happened for a while. What this runner knows of a sandbox lies in a
//! folder of its home, so that the next daemon goes on with it. Nothing here waits for the engine but tasks
//! of the sandbox that wants something of it.

mod container;
mod door;
mod elsewhere;
mod engine;
mod probe;

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use proto::v1;
use runner_supervisor::Realm;
use shared_link::runner::{SandboxOrder, SandboxReport};
use shared_types::{
    Clock, Digest, Entropy, Isolation, RunnerId, SandboxId, SandboxLimits, SandboxNetwork,
    SandboxPrivilege, SandboxSpec, SandboxState,
};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};

pub(crate) use container::Container;
use elsewhere::Mounted;
use engine::{Engine, EngineError};

use crate::processes::{LeftOperation, Processes};

/// Sandboxes of one runner, at most.
const SANDBOXES_AT_MOST: usize = 10_000;

/// The time between two looks at the state of the containers.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// The pause after a spare container could not be made.
const WARM_UP_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The pause between two looks for an engine that is away.
const LOOK_FOR_ENGINE_EVERY: Duration = Duration::from_millis(500);

/// The folder of the programs of containers, beside those of the sandboxes.
const PROGRAMS: &str = "programs";

/// The options of a pool.
pub(crate) struct PoolOptions {
    pub(crate) runner: RunnerId,
    pub(crate) docker: DockerOptions,
    /// The folder of the sandboxes, this daemon's alone.
    pub(crate) root: PathBuf,
    /// The program `gantry-supervisor`; `gantry-files` is beside it. Both are copied into the folder, which the
    /// engine can see.
    pub(crate) supervisor: PathBuf,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

/// The Docker engine that makes sandboxes, and its templates.
#[derive(Debug, Clone)]
pub(crate) struct DockerOptions {
    /// The engine's socket.
    pub(crate) socket: String,
    /// The templates that sandboxes can be made from, at least one; the first is the default.
    pub(crate) templates: Vec<Template>,
    /// The number of containers of each template that wait, running, for a new sandbox.
    pub(crate) warm: usize,
}

/// A template of sandboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    /// Its name, as people choose it.
    pub(crate) name: String,
    /// The image.
    pub(crate) image: String,
    /// The privilege that its commands have.
    pub(crate) privilege: SandboxPrivilege,
}

/// See the module. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ContainerPool {
    around: Arc<Surroundings>,
    containers: Arc<Mutex<HashMap<SandboxId, Container>>>,
    /// Running containers that wait for a new sandbox.
    spares: Arc<Mutex<Vec<Container>>>,
    /// Removals that are under way, by body. A sandbox that is made again in that time waits for its own.
    removals: Arc<Mutex<HashMap<SandboxId, Removal>>>,
}

/// A container as the engine lists it: its id there, and whose it is.
type ListedContainer = (String, Option<SandboxId>);

/// The removal of a container with its volumes.
#[derive(Debug)]
struct Removal {
    /// The sandbox.
    sandbox: SandboxId,
    done: JoinHandle<()>,
}

/// The parts that all containers share.
#[derive(Debug)]
struct Surroundings {
    runner: RunnerId,
    docker: DockerOptions,
    /// A spare container was taken.
    taken: Notify,
    root: PathBuf,
    supervisor: PathBuf,
    files: PathBuf,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    engine: tokio::sync::Mutex<Option<Engine>>,
    /// The parts of the engine's host that are mounted into the container that this runner is in.
    mounted: OnceLock<Vec<Mounted>>,
    /// The isolation that was tried and holds in containers of every template.
    isolation: Mutex<Isolation>,
    reports: Reports,
}

/// New reports of sandboxes; of each only the last.
#[derive(Debug, Default)]
struct Reports {
    new: Mutex<HashMap<SandboxId, SandboxReport>>,
    changed: Notify,
}

/// The reason why there can be no pool.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PoolError {
    /// The workload would be able to read what is the runner's.
    #[error(
        "a runner with Docker must run as root: its key, its journal and the output of commands are kept from the containers' users by being root's"
    )]
    NotRoot,
    /// There is no helper for files.
    #[error("there is no program {0:?}; put gantry-files beside gantry-supervisor")]
    MissingFiles(PathBuf),
    /// The folder is of no use.
    #[error("the folder {root:?} of the sandboxes cannot be used")]
    Root {
        /// The folder.
        root: PathBuf,
        /// The host's error.
        source: io::Error,
    },
}

impl ContainerPool {
    /// The pool as earlier daemons left it, with what they left running.
    ///
    /// # Errors
    /// Where the pool cannot work, even with an engine.
    pub(crate) async fn open(
        options: PoolOptions,
    ) -> Result<(Self, Vec<(PathBuf, LeftOperation)>), PoolError> {
        if !rustix::process::geteuid().is_root() {
            return Err(PoolError::NotRoot);
        }
        let files = options.supervisor.with_file_name("gantry-files");
        if !files.is_file() {
            return Err(PoolError::MissingFiles(files));
        }
        let root = |source| PoolError::Root {
            root: options.root.clone(),
            source,
        };
        let programs = options.root.join(PROGRAMS);
        let [supervisor, files] =
            provided(&programs, [&options.supervisor, &files]).map_err(root)?;
        let around = Arc::new(Surroundings {
            runner: options.runner,
            docker: options.docker,
            mounted: OnceLock::new(),
            taken: Notify::new(),
            root: options.root.clone(),
            supervisor,
            files,
            clock: options.clock,
            entropy: options.entropy,
            engine: tokio::sync::Mutex::default(),
            isolation: Mutex::default(),
            reports: Reports::default(),
        });
        let (mut containers, mut left) = (HashMap::new(), Vec::new());
        let mut spares_left = Vec::new();
        for folder in folders(&around.root).map_err(root)? {
            let operations = folder.join("operations");
            if operations.is_dir() {
                let found = Processes::left(&operations, Realm::Container, &around.clock).await;
                left.extend(found.map_err(root)?);
            }
            match Container::noted(&folder) {
                Some((body, note)) => {
                    let removed = note.removed;
                    let container = Container::again(body, note, Arc::clone(&around));
                    container.report_again();
                    keep(&mut containers, &mut spares_left, container, removed);
                }
                // Removed once nothing is left there.
                None => drop(fs::remove_dir(operations).and_then(|()| fs::remove_dir(folder))),
            }
        }
        let pool = Self {
            around,
            containers: Arc::new(Mutex::new(containers)),
            spares: Arc::default(),
            removals: Arc::default(),
        };
        for (container, removed) in spares_left {
            let (body, sandbox) = (container.body(), container.id());
            let done = tokio::spawn(async move {
                match removed {
                    true => container.remove_at_last().await,
                    false => container.remove_unless_used().await,
                }
            });
            lock(&pool.removals).insert(body, Removal { sandbox, done });
        }
        Ok((pool, left))
    }

    /// All sandboxes that there are.
    pub(crate) fn sandboxes(&self) -> Vec<(SandboxId, Container)> {
        let containers = lock(&self.containers);
        let all = containers.iter();
        all.map(|(id, container)| (*id, container.clone()))
            .collect()
    }

    /// Does what the server wants of a sandbox; what it is then, where operations may come for it.
    pub(crate) fn order(&self, id: SandboxId, order: SandboxOrder) -> Option<Container> {
        match order {
            SandboxOrder::Ensure { spec, start } => self.ensure(id, spec, start),
            SandboxOrder::Stop => {
                let container = lock(&self.containers).get(&id).cloned();
                match container.clone() {
                    Some(container) => {
                        tokio::spawn(
                            async move { container.stop("it was stopped on request").await },
                        );
                    }
                    None => self.around.reports.add(removed(id)),
                }
                container
            }
            SandboxOrder::Remove => {
                match lock(&self.containers).remove(&id) {
                    Some(container) => {
                        let (body, sandbox) = (container.body(), id);
                        let removal = self.clone().removal(id, container);
                        let done = tokio::spawn(removal);
                        let mut removals = lock(&self.removals);
                        removals.retain(|_, removal| !removal.done.is_finished());
                        removals.insert(body, Removal { sandbox, done });
                    }
                    // The end of the removal is reported once it is done.
                    None if self.is_being_removed(id) => {}
                    None => self.around.reports.add(removed(id)),
                }
                None
            }
        }
    }

    async fn removal(self, id: SandboxId, container: Container) {
        container.remove_at_last().await;
        // Another one may be this sandbox by now.
        if !lock(&self.containers).contains_key(&id) {
            self.around.reports.add(removed(id));
        }
    }

    fn is_being_removed(&self, id: SandboxId) -> bool {
        let removals = lock(&self.removals);
        let mut of_it = removals.values().filter(|removal| removal.sandbox == id);
        of_it.any(|removal| !removal.done.is_finished())
    }

    fn ensure(&self, id: SandboxId, spec: SandboxSpec, start: bool) -> Option<Container> {
        let mut containers = lock(&self.containers);
        let container = match containers.get(&id) {
            Some(container) => {
                container.become_like(spec);
                container.clone()
            }
            None if containers.len() >= SANDBOXES_AT_MOST => {
                self.around.reports.add(SandboxReport {
                    sandbox: id,
                    state: SandboxState::Failed,
                    reason: format!(
                        "the runner has {SANDBOXES_AT_MOST} sandboxes, which is all that it may have"
                    ),
                    privilege: SandboxPrivilege::Strict,
                });
                return None;
            }
            None if let Some(container) = self.take_spare(id, &spec) => {
                containers.insert(id, container.clone());
                container
            }
            None => {
                let after = lock(&self.removals).remove(&id);
                let after = after.map(|removal| removal.done);
                let container = Container::new(id, spec, Arc::clone(&self.around), after);
                container.report(SandboxState::Stopped, "it is made with its first operation");
                containers.insert(id, container.clone());
                container
            }
        };
        if start {
            let container = container.clone();
            // A failure to start is reported.
            tokio::spawn(async move { container.ready().await.map(drop) });
        }
        Some(container)
    }

    /// A container that runs already, as this sandbox.
    fn take_spare(&self, id: SandboxId, spec: &SandboxSpec) -> Option<Container> {
        let mut spares = lock(&self.spares);
        let mut found = None;
        spares.retain(|spare| {
            if found.is_none() {
                found = spare.become_sandbox(id, spec);
                return found.is_none();
            }
            true
        });
        let container = found?;
        self.around.taken.notify_one();
        container.report(SandboxState::Running, "");
        Some(container)
    }

    /// Has as many containers of each template wait for a sandbox as there are to be, for as long as the
    /// daemon lives.
    async fn keep_warm(self) {
        loop {
            let spares = lock(&self.spares).clone();
            for spare in &spares {
                // A spare container that has stopped is started again.
                let _ = spare.ready().await;
            }
            for template in &self.around.docker.templates {
                self.warm_up(template).await;
            }
            let _ = timeout(LOOK_EVERY, self.around.taken.notified()).await;
        }
    }

    async fn warm_up(&self, template: &Template) {
        loop {
            let of_template = |spare: &&Container| spare.is_made_from(&template.name);
            if lock(&self.spares).iter().filter(of_template).count() >= self.around.docker.warm {
                return;
            }
            let spare = Container::spare(spare_spec(template), Arc::clone(&self.around));
            // The container has logged why it cannot start.
            if spare.ready().await.is_err() {
                spare.remove_at_last().await;
                sleep(WARM_UP_AGAIN_AFTER).await;
                return;
            }
            lock(&self.spares).push(spare);
        }
    }

    /// Stops what is idle; nothing is where operations are open.
    pub(crate) fn rest(&self, busy: &HashSet<SandboxId>) {
        for (id, container) in self.sandboxes() {
            if busy.contains(&id) {
                container.is_used();
            } else if container.falls_idle() {
                tokio::spawn(async move { container.rest().await });
            }
        }
    }

    /// Waits until there is something new to report, and takes it.
    pub(crate) async fn news(&self) -> Vec<SandboxReport> {
        loop {
            let new = std::mem::take(&mut *lock(&self.around.reports.new));
            if !new.is_empty() {
                return new.into_values().collect();
            }
            self.around.reports.changed.notified().await;
        }
    }

    /// The facts about the pool that the runner reports.
    pub(crate) async fn facts(&self) -> v1::Pool {
        let problem = self.problem().await;
        v1::Pool {
            backend: "docker".to_owned(),
            templates: self.around.template_names().map(str::to_owned).collect(),
            isolation: lock(&self.around.isolation).to_string(),
            problem: problem.map_or_else(String::new, |error| error.to_string()),
            sudo_templates: self
                .around
                .sudo_template_names()
                .map(str::to_owned)
                .collect(),
        }
    }

    async fn problem(&self) -> Option<EngineError> {
        let engine = match self.around.engine().await {
            Ok(engine) => engine,
            Err(error) => return Some(error),
        };
        let default = self.around.docker.templates.first()?;
        engine.has_image(&default.image).await.err()
    }

    /// Looks after the containers for as long as the daemon lives. It removes containers without a sandbox, notices
    /// those that ended by themselves, and reports whenever the engine is away, and back.
    pub(crate) async fn look_after(self, said: watch::Sender<v1::Capabilities>) {
        let (mut unswept, mut tried) = (None::<Vec<ListedContainer>>, HashSet::new());
        loop {
            let facts = self.facts().await;
            let look_again_in = match facts.problem.is_empty() {
                true => LOOK_EVERY,
                false => LOOK_FOR_ENGINE_EVERY,
            };
            said.send_if_modified(|before| {
                let changed = before.pool.as_ref() != Some(&facts);
                before.pool = Some(facts);
                changed
            });
            self.look().await;
            if let Ok(engine) = self.around.engine().await
                && let Ok(all) = engine.all().await
            {
                let left = match &unswept {
                    None => all,
                    // Of what came later nothing is an orphan.
                    Some(left) => all.into_iter().filter(|one| left.contains(one)).collect(),
                };
                unswept = Some(self.sweep(&engine, left).await);
                let is_first = tried.is_empty();
                if self.try_isolation(&engine, &mut tried).await {
                    if is_first {
                        tokio::spawn(self.clone().keep_warm());
                    }
                    continue;
                }
            }
            sleep(look_again_in).await;
        }
    }

    /// Goes on with the containers that an earlier daemon has left running, and removes containers without a
    /// note. Their volumes stay: they may hold a person's files, where this runner's home is an older copy.
    /// Returns those that could not be removed.
    async fn sweep(&self, engine: &Engine, all: Vec<ListedContainer>) -> Vec<ListedContainer> {
        let (sandboxes, mut left) = (self.sandboxes(), Vec::new());
        for (container, body) in all {
            let mut known = sandboxes.iter().map(|(_, container)| container);
            if let Some(known) = known.find(|known| Some(known.body()) == body) {
                known.go_on().await;
                continue;
            }
            if body.is_some_and(|body| lock(&self.removals).contains_key(&body)) {
                continue;
            }
            match engine.remove_orphan(&container).await {
                Ok(()) => tracing::warn!(
                    container,
                    volumes = body.map(|body| format!("gantry-{body}-*")),
                    "removed a container that this runner does not know; its volumes stay"
                ),
                Err(error) => {
                    tracing::warn!(container, %error, "failed to remove it; trying again");
                    left.push((container, body));
                }
            }
        }
        left
    }

    /// Finds out the isolation of containers of each template that was not tried, once its image is there, in a
    /// container that is removed afterwards. Returns `true` if one was tried.
    async fn try_isolation(&self, engine: &Engine, tried: &mut HashSet<String>) -> bool {
        let before = tried.len();
        for template in &self.around.docker.templates {
            // Without its image nothing runs there either.
            if tried.contains(&template.name) || engine.has_image(&template.image).await.is_err() {
                continue;
            }
            let Some(here) = self.tried_in(template).await else {
                continue;
            };
            let mut proved = lock(&self.around.isolation);
            *proved = match tried.is_empty() {
                true => here,
                false => proved.in_both(&here),
            };
            tried.insert(template.name.clone());
        }
        tried.len() > before
    }

    async fn tried_in(&self, template: &Template) -> Option<Isolation> {
        let name = &template.name;
        let container = Container::spare(spare_spec(template), Arc::clone(&self.around));
        let tried = probe::try_in(&container, &self.around.root).await;
        if !container.remove().await {
            let (body, sandbox) = (container.body(), container.id());
            let done = tokio::spawn(async move { container.remove_at_last().await });
            lock(&self.removals).insert(body, Removal { sandbox, done });
        }
        let tried = tried.inspect_err(|reason| {
            tracing::warn!(
                template.name = name,
                reason,
                "failed to find out what is kept apart"
            );
        });
        let tried = tried.ok()?;
        for words in &tried.breaks {
            tracing::warn!(template.name = name, words, "not kept apart");
        }
        let isolation = tried.isolation();
        tracing::info!(template.name = name, %isolation, "isolation is proved");
        Some(isolation)
    }

    /// Tells what has become of the containers. While the engine is away their entry processes tell whether they run.
    async fn look(&self) {
        let paused = match self.around.engine().await {
            Ok(engine) => engine.paused().await,
            Err(error) => Err(error),
        };
        for (_, container) in self.sandboxes() {
            let paused = paused.as_ref().map(|all| all.contains(&container.body()));
            container.check(paused).await;
        }
    }
}

impl Surroundings {
    /// The engine; connects again where it was away.
    async fn engine(&self) -> Result<Engine, EngineError> {
        let mut engine = self.engine.lock().await;
        match &*engine {
            Some(engine) => Ok(engine.clone()),
            None => {
                let connected = Engine::connect(&self.docker.socket, self.runner).await?;
                if self.mounted.get().is_none() {
                    let mounted = match elsewhere::own_container() {
                        Some(container) => connected.mounted(&container).await?,
                        None => Vec::new(),
                    };
                    let _ = self.mounted.set(mounted);
                }
                Ok(engine.insert(connected).clone())
            }
        }
    }

    fn template(&self, name: &str) -> Option<&Template> {
        let mut templates = self.docker.templates.iter();
        templates.find(|known| known.name == name)
    }

    /// The privilege that commands of this template have; a missing template makes no sandbox.
    fn privilege(&self, template: &str) -> SandboxPrivilege {
        let template = self.template(template);
        template.map_or(SandboxPrivilege::Strict, |template| template.privilege)
    }

    fn sudo_template_names(&self) -> impl Iterator<Item = &str> {
        let templates = self.docker.templates.iter();
        let sudo = templates.filter(|template| template.privilege == SandboxPrivilege::Sudo);
        sudo.map(|template| template.name.as_str())
    }

    fn template_names(&self) -> impl Iterator<Item = &str> {
        self.docker
            .templates
            .iter()
            .map(|template| template.name.as_str())
    }

    /// A path as the engine knows it, which is the same but where this runner is in a container itself.
    ///
    /// # Errors
    /// If the engine does not have it.
    fn as_the_engine_sees(&self, path: &Path) -> Result<PathBuf, String> {
        let Some(mounted) = self.mounted.get().filter(|mounted| !mounted.is_empty()) else {
            return Ok(path.to_owned());
        };
        elsewhere::on_the_host(path, mounted).ok_or_else(|| {
            format!(
                "the engine does not see {}, which is in this runner's own container: mount a volume or a \
                 folder of the host there",
                path.display()
            )
        })
    }
}

impl Reports {
    fn add(&self, report: SandboxReport) {
        lock(&self.new).insert(report.sandbox, report);
        self.changed.notify_one();
    }
}

/// Files a container that is noted with the sandboxes or with what is to be removed.
fn keep(
    containers: &mut HashMap<SandboxId, Container>,
    left: &mut Vec<(Container, bool)>,
    container: Container,
    removed: bool,
) {
    if container.is_spare() {
        return left.push((container, removed));
    }
    let id = container.id();
    match containers.get(&id) {
        // A removal was cut off before it was noted: the container that was made in advance is the later one.
        Some(before) if before.body() != id => {
            tracing::warn!(sandbox.id = %id, "two containers are noted for a sandbox; the later one counts");
        }
        _ => drop(containers.insert(id, container)),
    }
}

/// The specification of a spare container.
fn spare_spec(template: &Template) -> SandboxSpec {
    SandboxSpec {
        name: "spare".to_owned(),
        template: template.name.clone(),
        limits: SandboxLimits::default(),
        network: SandboxNetwork::None,
        may_sudo: template.privilege == SandboxPrivilege::Sudo,
    }
}

fn removed(sandbox: SandboxId) -> SandboxReport {
    SandboxReport {
        sandbox,
        state: SandboxState::Removed,
        reason: String::new(),
        privilege: SandboxPrivilege::Strict,
    }
}

/// Copies of these programs in a folder, which is made where it is missing, each under a name that tells its
/// content. Those of other versions go: what runs has them open.
fn provided<const N: usize>(folder: &Path, programs: [&PathBuf; N]) -> io::Result<[PathBuf; N]> {
    use std::os::unix::fs::PermissionsExt as _;
    make_folder(folder)?;
    let mut copies = Vec::with_capacity(N);
    for program in programs {
        let content = fs::read(program)?;
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let copy = folder.join(format!("{name}-{}", Digest::of(&content)));
        if !copy.is_file() {
            let new = folder.join("new");
            fs::write(&new, content)?;
            fs::set_permissions(&new, fs::Permissions::from_mode(0o755))?;
            fs::File::open(&new)?.sync_all()?;
            fs::rename(new, &copy)?;
        }
        copies.push(copy);
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if copies.contains(&path) {
            continue;
        }
        // Where an engine looks for one that is gone it makes a folder.
        match path.is_dir() {
            true => fs::remove_dir(path)?,
            false => fs::remove_file(path)?,
        }
    }
    Ok(copies.try_into().expect("one for each"))
}

/// The folders of sandboxes below the root, which is made where it is missing.
fn folders(root: &Path) -> io::Result<Vec<PathBuf>> {
    make_folder(root)?;
    let entries = fs::read_dir(root)?.collect::<Result<Vec<_>, _>>()?;
    let folders = entries.into_iter().map(|entry| entry.path());
    Ok(folders
        .filter(|path| path.is_dir() && !path.ends_with(PROGRAMS))
        .collect())
}

/// Makes a folder for this user alone, with its parents, where it is missing.
fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
