//! The start of a container, until its entry process takes orders and its file helper answers.

use std::{collections::BTreeMap, fs, io, sync::Arc, time::Duration};

use runner_host::{Account, Inhabited, Inside};
use runner_supervisor::{
    CommandUser, KillChoice, KillMethod, ORDERS, Order, Orders, PROGRAMS_LOCK, Realm,
};
use rustix::fs::FlockOperation;
use shared_types::{SandboxPrivilege, SandboxState};
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep, timeout},
};

use super::{
    Container, RunningContainer, SUDO_IS_FORBIDDEN, lock,
    make::{ACCOUNT, HOME, OURS, WORKSPACE, privilege_of},
};
use crate::{
    docker::{
        door::Door,
        engine::{ContainerStatus, EngineError, Make},
    },
    processes::{ProcessOptions, Processes},
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

impl Container {
    /// Stops a container that has just started, where policy has come to forbid its root in that time.
    pub(super) async fn stop_if_forbidden(&self, running: &RunningContainer) -> Result<(), String> {
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
    pub(super) async fn start(&self, why: &str) -> Result<RunningContainer, String> {
        let told = |error: EngineError| error.to_string();
        let id = self.0.body;
        let engine = self.0.around.engine().await.map_err(told)?;
        let spec = lock(&self.0.spec).clone();
        let make = self.make(&spec);
        let found = engine.find(id).await.map_err(told)?;
        if matches!(found, ContainerStatus::Container { paused: true, .. }) {
            return Err(self.is_paused());
        }
        let mut runs_as = match &found {
            ContainerStatus::Container {
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
            let is_as_made = matches!(&found, ContainerStatus::Container { made_for, .. }
                if *made_for == make.made_for && privilege == SandboxPrivilege::Strict);
            if !is_as_made {
                if found != ContainerStatus::Nothing {
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
        Ok(RunningContainer {
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
        Ok(matches!(
            found,
            Ok(ContainerStatus::Container { running: true, .. })
        ))
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

    /// True if its entry process takes orders, which it does as long as the container runs.
    pub(super) async fn listens(&self) -> bool {
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
            user: CommandUser { uid, gid },
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
}
