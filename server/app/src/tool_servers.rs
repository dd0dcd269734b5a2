//! The connections to tool servers: each session has its own, and they are made when they are needed.
//!
//! A server that is a program runs on the session's runner, in its sandbox, as an operation of the session's user. It is
//! stopped once it was idle for a while, when its session is deleted, and when its declaration changes. A replica that
//! dies leaves its programs; the one that takes over stops them (`operations/program.rs`), and the runner stops a
//! program that writes nothing for long.

pub(crate) mod access;
mod command;
mod people;
mod pipe;
mod port;
mod uses;
pub(crate) mod values;
mod variable;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use server_agent::{HookPosts, ServerPlace, SessionServers, ToolServers};
use server_mcp::{Client, Era, McpError, Options, Remote, START_USUALLY, Way};
use server_records::SessionKey;
use server_store::StoreError;
use shared_types::{
    Digest, OperationId, TenantId,
    event::{ToolServer, ToolServerTransport},
};
use tokio::{sync::Mutex as AsyncMutex, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::uses::{SessionServer, TestedServer, ToolServerUses};
use self::{
    access::{GrantOf, Grants, PersonAccess},
    people::PeopleOfCall,
    port::SessionToolServers,
};
use crate::operations::{Operations, StartProgram};

/// A connection that is not used for so long is closed, and its program stopped.
const IDLE_AT_MOST: Duration = Duration::from_secs(30 * 60);

/// The pause between two looks at the connections.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// A server that could not be started is not started again for a list of its tools within this time.
const FAILED_FOR: Duration = Duration::from_secs(60);

/// Most connections of one process of Gantry.
const CONNECTIONS_AT_MOST: usize = 1024;

/// The connections of all sessions; cheap to clone.
#[derive(Clone)]
pub(crate) struct ToolServerPool(Arc<Pool>);

struct Pool {
    grants: Grants,
    /// There once the server has started.
    operations: OnceLock<Operations>,
    slots: Mutex<HashMap<(SessionKey, String), Arc<Slot>>>,
}

/// The place of one connection.
struct Slot {
    state: AsyncMutex<State>,
    /// The requests that are under way.
    busy: AtomicUsize,
    used: Mutex<Instant>,
    /// The client, for a question that must not wait.
    client: Mutex<Option<Arc<Client>>>,
    people: PeopleOfCall,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    /// The last start that failed: when, of which declaration, and why.
    failed: Option<(Instant, Digest, String)>,
    /// The era of the server, once it is known.
    era: Option<Era>,
}

/// An open connection.
struct Open {
    client: Arc<Client>,
    /// The digest of what it was made from.
    of: Digest,
    /// Its program, to be stopped.
    program: Option<OperationId>,
}

/// A connection that is in use. Dropping it ends the use.
pub(super) struct InUse {
    slot: Arc<Slot>,
    pub(super) client: Arc<Client>,
    /// The people of the call that is under way, for the server's questions.
    people: PeopleOfCall,
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.slot.busy.fetch_sub(1, Ordering::SeqCst);
        self.slot.touch();
    }
}

impl Slot {
    fn new(server: &str) -> Self {
        Self {
            state: AsyncMutex::default(),
            busy: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
            client: Mutex::default(),
            people: PeopleOfCall::of(server),
        }
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn is_idle(&self) -> bool {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        self.busy.load(Ordering::SeqCst) == 0 && used.elapsed() >= IDLE_AT_MOST
    }

    fn show(&self, client: Option<Arc<Client>>) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }
}

impl ToolServerPool {
    pub(crate) fn new(grants: Grants) -> Self {
        Self(Arc::new(Pool {
            grants,
            operations: OnceLock::new(),
            slots: Mutex::default(),
        }))
    }

    /// Begins to work: programs are started as operations, and idle connections are closed.
    pub(crate) fn start(
        &self,
        operations: &Operations,
        tasks: &TaskTracker,
        stop: CancellationToken,
    ) {
        // It is set once, when the server starts.
        let _ = self.0.operations.set(operations.clone());
        let pool = self.clone();
        tasks.spawn(async move {
            let looking = async {
                loop {
                    tokio::time::sleep(LOOK_AGAIN).await;
                    pool.close_unused().await;
                }
            };
            stop.run_until_cancelled(looking).await;
            pool.close_all().await;
        });
    }

    /// A connection with this server, which is made where there is none.
    ///
    /// # Errors
    /// There is none; the words say why. With `lists`, a start that just failed is not tried again.
    async fn open(
        &self,
        session: SessionKey,
        server: &ToolServer,
        place: Option<&ServerPlace>,
        lists: bool,
    ) -> Result<InUse, String> {
        let values = self.values_stamp(session, server).await?;
        let slot = self.slot(session, &server.name)?;
        let of = made_from(server, place, &values);
        let mut state = slot.state.lock().await;
        let opened = match &state.open {
            Some(open) if open.of == of && open.client.ended().is_none() => Ok(open.client.clone()),
            _ => {
                let anew = (session, server, place);
                self.open_anew(anew, &slot.people, &mut state, of, lists)
                    .await
            }
        };
        slot.show(opened.as_ref().ok().cloned());
        drop(state);
        match opened {
            Ok(client) => Ok(InUse {
                people: slot.people.clone(),
                slot,
                client,
            }),
            Err(why) => {
                slot.busy.fetch_sub(1, Ordering::SeqCst);
                Err(why)
            }
        }
    }

    /// Words that change with the values of the session's person, where a server may be sent one: a connection with
    /// values that are removed or changed is used no more.
    async fn values_stamp(
        &self,
        session: SessionKey,
        server: &ToolServer,
    ) -> Result<String, String> {
        let ToolServerTransport::Http { url, headers, .. } = &server.transport else {
            return Ok(String::new());
        };
        if headers.is_empty() && !url.contains("${") {
            return Ok(String::new());
        }
        let (store, tenant) = (&self.0.grants.store, session.tenant);
        let unread = |error: StoreError| error.to_string();
        let owner = store.session_owner(tenant, session.session).await;
        let values = store.tool_values(tenant, owner.map_err(unread)?).await;
        Ok(format!("{:?}", values.map_err(unread)?))
    }

    async fn open_anew(
        &self,
        (session, server, place): (SessionKey, &ToolServer, Option<&ServerPlace>),
        people: &PeopleOfCall,
        state: &mut State,
        of: Digest,
        lists: bool,
    ) -> Result<Arc<Client>, String> {
        if let Some(open) = state.open.take() {
            self.close(session, open).await;
        }
        if let Some((at, failed, why)) = &state.failed
            && lists
            && *failed == of
            && at.elapsed() < FAILED_FOR
        {
            return Err(why.clone());
        }
        let mut era = state.era;
        let connected = loop {
            match self.connect(session, server, place, era, people).await {
                // An earlier server may end at the question for its era.
                Err((Some(McpError::Closed(_)), _)) if era.is_none() => era = Some(Era::Legacy),
                connected => break connected,
            }
        };
        match connected {
            Ok((client, program)) => {
                state.era = Some(client.era());
                let client = Arc::new(client);
                state.open = Some(Open {
                    client: Arc::clone(&client),
                    of,
                    program,
                });
                Ok(client)
            }
            Err((error, why)) => {
                state.era = None;
                // Once the person has signed in, it works at once.
                let is_sign_in = matches!(error, Some(McpError::SignIn(_)));
                state.failed = (!is_sign_in).then(|| (Instant::now(), of, why.clone()));
                Err(why)
            }
        }
    }

    fn slot(&self, session: SessionKey, name: &str) -> Result<Arc<Slot>, String> {
        let mut slots = self.0.slots.lock().unwrap_or_else(PoisonError::into_inner);
        // It is in use before another task can find it unused.
        if let Some(slot) = slots.get(&(session, name.to_owned())) {
            slot.busy.fetch_add(1, Ordering::SeqCst);
            return Ok(Arc::clone(slot));
        }
        if slots.len() >= CONNECTIONS_AT_MOST {
            return Err(format!(
                "{CONNECTIONS_AT_MOST} tool servers are connected already; try again later"
            ));
        }
        let slot = Arc::new(Slot::new(name));
        slot.busy.fetch_add(1, Ordering::SeqCst);
        slots.insert((session, name.to_owned()), Arc::clone(&slot));
        Ok(slot)
    }

    fn known(&self, session: SessionKey, name: &str) -> Option<Arc<Client>> {
        let slots = self.0.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.get(&(session, name.to_owned()))?;
        slot.client
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Closes the idle connections, and those of sessions that are gone.
    async fn close_unused(&self) {
        let slots: Vec<_> = {
            let slots = self.0.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots
                .iter()
                .map(|(key, slot)| (key.clone(), Arc::clone(slot)))
                .collect()
        };
        for (key, slot) in slots {
            let (session, _) = &key;
            let owner = self
                .0
                .grants
                .store
                .session_owner(session.tenant, session.session)
                .await;
            let is_gone = matches!(owner, Err(StoreError::NotFound));
            let is_unused = is_gone || slot.is_idle();
            let is_taken = is_unused && {
                let mut slots = self.0.slots.lock().unwrap_or_else(PoisonError::into_inner);
                // A use may have begun since.
                let is_free = is_gone || slot.is_idle();
                is_free && slots.remove(&key).is_some()
            };
            if is_taken {
                let open = slot.state.lock().await.open.take();
                slot.show(None);
                if let Some(open) = open {
                    tracing::debug!(session.id = %session.session, "a tool server is not used any more and is stopped");
                    self.close(*session, open).await;
                }
            }
        }
    }

    async fn close_all(&self) {
        let slots: Vec<_> = {
            let mut slots = self.0.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.drain().collect()
        };
        let closing = slots.into_iter().map(|((session, _), slot)| async move {
            let open = slot.state.lock().await.open.take();
            if let Some(open) = open {
                self.close(session, open).await;
            }
        });
        futures_util::future::join_all(closing).await;
    }

    async fn close(&self, session: SessionKey, open: Open) {
        open.client.close().await;
        if let (Some(program), Some(operations)) = (open.program, self.0.operations.get()) {
            operations.stop_program(session.tenant, program).await;
        }
    }

    /// Connects to a server.
    ///
    /// # Errors
    /// The error of the protocol, where it is one, and words for people.
    async fn connect(
        &self,
        session: SessionKey,
        server: &ToolServer,
        place: Option<&ServerPlace>,
        era: Option<Era>,
        people: &PeopleOfCall,
    ) -> Result<(Client, Option<OperationId>), (Option<McpError>, String)> {
        let words = |why: &dyn std::fmt::Display| (None, why.to_string());
        let options = Options {
            era,
            person: Arc::new(people.clone()),
            start_within: server
                .startup_timeout_s
                .map_or(START_USUALLY, |seconds| Duration::from_secs(seconds.into())),
        };
        let tenant = session.tenant;
        let owner = self
            .0
            .grants
            .store
            .session_owner(tenant, session.session)
            .await;
        let user = owner.map_err(|error| words(&error))?;
        let secrets = self.values((tenant, user), server, place).await;
        let secrets = secrets.map_err(|why| words(&why))?;
        let (way, program) = match &server.transport {
            ToolServerTransport::Http {
                url,
                headers,
                issuer,
                ..
            } => {
                let mut headers =
                    values::whole(headers, secrets.headers).map_err(|why| words(&why))?;
                let mut address = url.clone();
                let host = values::host_of(url).map_err(|why| words(&why))?;
                for text in headers.values_mut().chain([&mut address]) {
                    let filled = self.0.grants.filled((tenant, user), text, &host).await;
                    *text = filled.map_err(|why| words(&why))?;
                }
                let remote = Remote::new(self.0.grants.web.client().clone(), &address, &headers);
                let remote = remote.map_err(failed)?;
                let access = PersonAccess {
                    grants: self.0.grants.clone(),
                    of: GrantOf {
                        tenant,
                        user,
                        url: url.clone(),
                        name: server.name.clone(),
                        issuer: issuer.clone(),
                    },
                };
                // A sign-in is for one address.
                let remote = match address == *url {
                    true => remote.with_access(Arc::new(access)),
                    false => remote,
                };
                (Way::Http(remote), None)
            }
            ToolServerTransport::Stdio { command, args, env } => {
                let operations = self.0.operations.get();
                let operations =
                    operations.ok_or_else(|| words(&"this server of Gantry is starting"))?;
                let place = place.ok_or_else(|| {
                    words(&"it is a program, and no runner is there to run it; choose one: /runner NAME")
                })?;
                let hidden = secrets.env.values().cloned().collect();
                let env = values::whole(env, secrets.env).map_err(|why| words(&why))?;
                let start = command::of(command, args, &env).map_err(|why| words(&why))?;
                let program = operations
                    .start_program(StartProgram {
                        tenant,
                        user,
                        runner: place.runner,
                        sandbox: place.sandbox,
                        request: start.request(&place.directory),
                        run_for: command::RUNS_AT_MOST,
                    })
                    .await
                    .map_err(|error| words(&error))?;
                let started = Started::new(operations.clone(), session.tenant, program.id);
                let (pipe, said) =
                    pipe::of(program, operations.clone(), start.first_line(), hidden);
                (Way::Pipe(pipe), Some((started, said)))
            }
        };
        // A start that fails, or is not waited for any more, stops the program.
        match Client::connect(way, options).await {
            Ok(client) => Ok((client, program.and_then(|(program, _)| program.keep()))),
            Err(error @ McpError::TimedOut(_)) => {
                let said = program.map(|(_, said)| said.shown()).unwrap_or_default();
                let words = match said.is_empty() {
                    true => error.to_string(),
                    false => format!("{error}; it wrote: {said}"),
                };
                Err((Some(error), words))
            }
            Err(error) => Err(failed(error)),
        }
    }
}

/// A program that is stopped when this is dropped, unless it is kept.
struct Started {
    operations: Operations,
    tenant: TenantId,
    program: Option<OperationId>,
}

impl Started {
    fn new(operations: Operations, tenant: TenantId, program: OperationId) -> Self {
        Self {
            operations,
            tenant,
            program: Some(program),
        }
    }

    fn keep(mut self) -> Option<OperationId> {
        self.program.take()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let Some(program) = self.program.take() else {
            return;
        };
        let (operations, tenant) = (self.operations.clone(), self.tenant);
        tokio::spawn(async move { operations.stop_program(tenant, program).await });
    }
}

fn failed(error: McpError) -> (Option<McpError>, String) {
    let words = error.to_string();
    (Some(error), words)
}

/// The digest of all that a connection is made from.
fn made_from(server: &ToolServer, place: Option<&ServerPlace>, values: &str) -> Digest {
    let place = match (&server.transport, place) {
        (ToolServerTransport::Stdio { .. }, Some(place)) => {
            format!("{}/{}/{}", place.runner, place.sandbox, place.directory)
        }
        _ => String::new(),
    };
    // Its fields are texts, which always have a JSON form.
    let server = serde_json::to_string(server).unwrap_or_default();
    Digest::of(format!("{place}\n{server}\n{values}").as_bytes())
}

impl SessionServers for ToolServerPool {
    fn of(&self, session: SessionKey) -> Arc<dyn ToolServers> {
        Arc::new(SessionToolServers {
            pool: self.clone(),
            session,
        })
    }

    fn posts(&self, session: SessionKey) -> Arc<dyn HookPosts> {
        Arc::new(SessionToolServers {
            pool: self.clone(),
            session,
        })
    }
}
