//! The requests to a Docker engine, in this program's words.
//!
//! Containers and volumes of this runner carry labels, by which they are found after a crash.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    time::Duration,
};

use bollard::{
    API_DEFAULT_VERSION, Docker,
    errors::Error,
    models::{
        ContainerCreateBody, ContainerStateStatusEnum, ContainerSummary, HealthConfig, HostConfig,
        Mount, MountType, MountVolumeOptions,
    },
    query_parameters::{
        CreateContainerOptionsBuilder, DownloadFromContainerOptionsBuilder,
        ListContainersOptionsBuilder, LogsOptionsBuilder, RemoveContainerOptionsBuilder,
        RemoveVolumeOptionsBuilder, StopContainerOptionsBuilder,
    },
};
use futures_util::StreamExt as _;
use shared_types::{RunnerId, SandboxId, SandboxLimits, SandboxNetwork, SandboxPrivilege};
use tokio::time::timeout;

use super::elsewhere::Mounted;

/// The label that says whose a container is.
const OF_RUNNER: &str = "io.gantry.runner";

/// The label that says which sandbox a container is.
const OF_SANDBOX: &str = "io.gantry.sandbox";

/// The label that says what a container was made for.
const MADE_FOR: &str = "io.gantry.made-for";

/// The longest time that the engine may take for one request.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

/// The same in a whole number of seconds, as the client takes it.
const ANSWERS_WITHIN_S: u64 = ANSWERS_WITHIN.as_secs();

/// The most processes that an entry process and its supervisors need beside the commands' own.
const OUR_PROCESSES: i64 = 32;

/// A block of a tar archive, in bytes.
const TAR_BLOCK_BYTES: usize = 512;

/// The most bytes of a container's last words that are reported.
const LAST_WORDS_BYTES: usize = 512;

/// The only capabilities in a container: to start commands as another user, to give that user its folders, and
/// to signal its processes. None of them is a command's, but where commands may be root all but SETPCAP are
/// root's.
const CAPABILITIES: [&str; 7] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "KILL",
    "SETGID",
    "SETPCAP",
    "SETUID",
];

/// A Docker engine. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    docker: Docker,
    runner: RunnerId,
}

/// The reason why the engine did not do something.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum EngineError {
    /// It does not answer. The words are the same for every failure, because each change of a pool's problem opens
    /// a new link.
    #[error("the Docker engine does not answer; start it, or name another with --docker-host")]
    Away,
    /// The image is not there.
    #[error("there is no image {0:?} on this host; build it (docker/base/build) or pull it")]
    MissingImage(String),
    /// It refused.
    #[error("the Docker engine refused: {0}")]
    Refused(String),
}

/// The state of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ContainerStatus {
    /// There is none.
    Nothing,
    /// It is there.
    Container {
        /// True if it runs.
        running: bool,
        /// True if it was paused by hand.
        paused: bool,
        /// The purpose that it was made for, as noted then.
        made_for: String,
        /// True if it ended because its memory was used up.
        out_of_memory: bool,
        /// With this code.
        exit_code: i64,
    },
}

/// The parts of a new container.
#[derive(Debug, Clone)]
pub(super) struct Make {
    pub(super) sandbox: SandboxId,
    pub(super) image: String,
    pub(super) limits: SandboxLimits,
    pub(super) network: SandboxNetwork,
    /// The privilege that its commands have: only root needs a root that can be written.
    pub(super) privilege: SandboxPrivilege,
    /// Its entry process, and the words of that.
    pub(super) entry: Vec<String>,
    /// The directory where that begins.
    pub(super) directory: String,
    /// Folders and files of the host: there, here, and whether only to be read.
    pub(super) binds: Vec<(PathBuf, String, bool)>,
    /// Volumes that stay when the container goes: their suffix, and where they are.
    pub(super) volumes: Vec<(&'static str, String)>,
    /// The purpose for [`ContainerStatus`].
    pub(super) made_for: String,
}

impl Engine {
    /// The engine at this socket.
    ///
    /// # Errors
    /// Where it does not answer.
    pub(super) async fn connect(host: &str, runner: RunnerId) -> Result<Self, EngineError> {
        let docker = Docker::connect_with_unix(host, ANSWERS_WITHIN_S, API_DEFAULT_VERSION);
        let docker = docker.map_err(in_words)?;
        let negotiated = timeout(Duration::from_secs(5), docker.negotiate_version()).await;
        let docker = negotiated
            .map_err(|_| EngineError::Away)?
            .map_err(in_words)?;
        Ok(Self { docker, runner })
    }

    /// Checks that the image is there.
    pub(super) async fn has_image(&self, image: &str) -> Result<(), EngineError> {
        match self.docker.inspect_image(image).await {
            Ok(_) => Ok(()),
            Err(error) if status(&error) == Some(404) => {
                Err(EngineError::MissingImage(image.to_owned()))
            }
            Err(error) => Err(in_words(error)),
        }
    }

    /// The parts of its host that are mounted into a container.
    pub(super) async fn mounted(&self, container: &str) -> Result<Vec<Mounted>, EngineError> {
        let found = self.docker.inspect_container(container, None).await;
        let mounts = found.map_err(in_words)?.mounts.unwrap_or_default();
        let mounts = mounts.into_iter().filter_map(|mount| {
            Some(Mounted {
                here: mount.destination?.into(),
                there: mount.source?.into(),
            })
        });
        Ok(mounts.collect())
    }

    /// True if nothing is in this folder of a container, running or not; not where there is no container.
    pub(super) async fn is_empty(
        &self,
        body: SandboxId,
        folder: &str,
    ) -> Result<bool, EngineError> {
        let options = DownloadFromContainerOptionsBuilder::new().path(folder);
        let archive = self
            .docker
            .download_from_container(&name(body), Some(options.build()));
        // The first block of the archive (POSIX ustar) is the folder itself; a second one that says anything is
        // of something in it.
        let mut archive = std::pin::pin!(archive);
        let mut bytes = Vec::new();
        while bytes.len() < 2 * TAR_BLOCK_BYTES {
            match archive.next().await {
                Some(Ok(piece)) => bytes.extend_from_slice(&piece),
                Some(Err(error)) if status(&error) == Some(404) => return Ok(false),
                Some(Err(error)) => return Err(in_words(error)),
                None => break,
            }
        }
        let second = bytes.iter().skip(TAR_BLOCK_BYTES).take(TAR_BLOCK_BYTES);
        Ok(bytes.len() >= TAR_BLOCK_BYTES && second.copied().all(|byte| byte == 0))
    }

    /// The state of the container of a sandbox.
    pub(super) async fn find(&self, sandbox: SandboxId) -> Result<ContainerStatus, EngineError> {
        let found = match self.docker.inspect_container(&name(sandbox), None).await {
            Ok(found) => found,
            Err(error) if status(&error) == Some(404) => return Ok(ContainerStatus::Nothing),
            Err(error) => return Err(in_words(error)),
        };
        let labels = found.config.and_then(|config| config.labels);
        let labels = labels.unwrap_or_default();
        let state = found.state.unwrap_or_default();
        Ok(ContainerStatus::Container {
            running: state.status == Some(ContainerStateStatusEnum::RUNNING),
            paused: state.status == Some(ContainerStateStatusEnum::PAUSED),
            made_for: labels.get(MADE_FOR).cloned().unwrap_or_default(),
            out_of_memory: state.oom_killed.unwrap_or_default(),
            exit_code: state.exit_code.unwrap_or_default(),
        })
    }

    /// Makes a container; its volumes are made where they are missing.
    pub(super) async fn make(&self, make: &Make) -> Result<(), EngineError> {
        let sandbox = make.sandbox;
        let bind = |(from, to, only_read): &(PathBuf, String, bool)| {
            let mode = if *only_read { "ro" } else { "rw" };
            format!("{}:{to}:{mode}", from.display())
        };
        let whose = HashMap::from([
            (OF_RUNNER.to_owned(), self.runner.to_string()),
            (OF_SANDBOX.to_owned(), sandbox.to_string()),
        ]);
        let volume = |(suffix, target): &(&'static str, String)| Mount {
            target: Some(target.clone()),
            source: Some(volume(sandbox, suffix)),
            typ: Some(MountType::VOLUME),
            volume_options: Some(MountVolumeOptions {
                labels: Some(whose.clone()),
                ..MountVolumeOptions::default()
            }),
            ..Mount::default()
        };
        let tmpfs = |options: &str| options.to_owned();
        let limits = &make.limits;
        let memory = i64::try_from(limits.memory_bytes).unwrap_or(i64::MAX);
        let host = HostConfig {
            binds: Some(make.binds.iter().map(bind).collect()),
            mounts: Some(make.volumes.iter().map(volume).collect()),
            tmpfs: Some(HashMap::from([
                (
                    "/tmp".to_owned(),
                    tmpfs("rw,nosuid,nodev,exec,size=50%,mode=1777"),
                ),
                (
                    "/run".to_owned(),
                    tmpfs("rw,nosuid,nodev,size=16m,mode=755"),
                ),
            ])),
            memory: Some(memory),
            // No swap beside it.
            memory_swap: Some(memory),
            nano_cpus: Some(i64::from(limits.cpu_millis) * 1_000_000),
            pids_limit: Some(i64::from(limits.processes) + OUR_PROCESSES),
            network_mode: Some(match make.network {
                SandboxNetwork::None => "none".to_owned(),
                SandboxNetwork::Open => "bridge".to_owned(),
            }),
            readonly_rootfs: Some(make.privilege == SandboxPrivilege::Strict),
            cap_drop: Some(vec!["ALL".to_owned()]),
            cap_add: Some(CAPABILITIES.map(str::to_owned).to_vec()),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            readonly_paths: match make.privilege {
                SandboxPrivilege::Strict => None,
                SandboxPrivilege::Sudo => Some(of_the_kernel()?),
            },
            ..HostConfig::default()
        };
        let mut labels = whose.clone();
        labels.insert(MADE_FOR.to_owned(), make.made_for.clone());
        let body = ContainerCreateBody {
            hostname: Some("sandbox".to_owned()),
            user: Some("0:0".to_owned()),
            image: Some(make.image.clone()),
            entrypoint: Some(make.entry.clone()),
            cmd: Some(Vec::new()),
            working_dir: Some(make.directory.clone()),
            // The engine would run the image's as root with all of the container's capabilities, outside
            // everything that confines commands.
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
            labels: Some(labels),
            host_config: Some(host),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptionsBuilder::new().name(&name(sandbox));
        match self
            .docker
            .create_container(Some(options.build()), body)
            .await
        {
            Ok(_) => Ok(()),
            Err(error) if status(&error) == Some(404) => {
                Err(EngineError::MissingImage(make.image.clone()))
            }
            Err(error) => Err(in_words(error)),
        }
    }

    /// Starts a container; one that runs is left alone.
    pub(super) async fn start(&self, sandbox: SandboxId) -> Result<(), EngineError> {
        let started = self.docker.start_container(&name(sandbox), None).await;
        started.map_err(in_words)
    }

    /// Stops a container, with all that runs in it; one that is gone or stopped is that already.
    pub(super) async fn stop(&self, sandbox: SandboxId) -> Result<(), EngineError> {
        let options = StopContainerOptionsBuilder::new().t(5).build();
        match self
            .docker
            .stop_container(&name(sandbox), Some(options))
            .await
        {
            Ok(()) => Ok(()),
            Err(error) if matches!(status(&error), Some(304 | 404)) => Ok(()),
            Err(error) => Err(in_words(error)),
        }
    }

    /// Removes a container, with all that runs in it; its volumes stay, but those that the image makes for each
    /// container.
    pub(super) async fn remove(&self, sandbox: SandboxId) -> Result<(), EngineError> {
        self.remove_named(&name(sandbox)).await
    }

    async fn remove_named(&self, name: &str) -> Result<(), EngineError> {
        let options = RemoveContainerOptionsBuilder::new()
            .force(true)
            .v(true)
            .build();
        match self.docker.remove_container(name, Some(options)).await {
            Ok(()) => Ok(()),
            // 409: it is being removed.
            Err(error) if matches!(status(&error), Some(404 | 409)) => Ok(()),
            Err(error) => Err(in_words(error)),
        }
    }

    /// Removes a volume with the files in it.
    pub(super) async fn remove_volume(
        &self,
        sandbox: SandboxId,
        suffix: &str,
    ) -> Result<(), EngineError> {
        let options = RemoveVolumeOptionsBuilder::new().force(true).build();
        let name = volume(sandbox, suffix);
        match self.docker.remove_volume(&name, Some(options)).await {
            Ok(()) => Ok(()),
            Err(error) if status(&error) == Some(404) => Ok(()),
            Err(error) => Err(in_words(error)),
        }
    }

    /// All containers of this runner, running or not, with the sandbox that each says to be.
    pub(super) async fn all(&self) -> Result<Vec<(String, Option<SandboxId>)>, EngineError> {
        let containers = self.list(HashMap::new()).await?.into_iter();
        Ok(containers
            .filter_map(|container| {
                let labels = container.labels.unwrap_or_default();
                let sandbox = labels.get(OF_SANDBOX);
                Some((container.id?, sandbox.and_then(|text| text.parse().ok())))
            })
            .collect())
    }

    /// The sandboxes of this runner whose containers are paused.
    pub(super) async fn paused(&self) -> Result<HashSet<SandboxId>, EngineError> {
        let status = HashMap::from([("status".to_owned(), vec!["paused".to_owned()])]);
        let containers = self.list(status).await?.into_iter();
        let bodies = containers.filter_map(|container| {
            let labels = container.labels.unwrap_or_default();
            labels.get(OF_SANDBOX)?.parse().ok()
        });
        Ok(bodies.collect())
    }

    /// The containers of this runner that these filters let pass, running or not.
    async fn list(
        &self,
        mut filters: HashMap<String, Vec<String>>,
    ) -> Result<Vec<ContainerSummary>, EngineError> {
        let of_runner = format!("{OF_RUNNER}={}", self.runner);
        filters.insert("label".to_owned(), vec![of_runner]);
        let options = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&filters);
        let containers = self.docker.list_containers(Some(options.build())).await;
        containers.map_err(in_words)
    }

    /// Removes a container that belongs to no sandbox.
    pub(super) async fn remove_orphan(&self, id: &str) -> Result<(), EngineError> {
        self.remove_named(id).await
    }

    /// The last that a container's entry process said; empty where it said nothing.
    pub(super) async fn last_words(&self, sandbox: SandboxId) -> String {
        let options = LogsOptionsBuilder::new()
            .stdout(true)
            .stderr(true)
            .tail("5");
        let mut logs = self.docker.logs(&name(sandbox), Some(options.build()));
        let mut words = String::new();
        while let Some(Ok(line)) = logs.next().await {
            words.push_str(&line.to_string());
            if words.len() > LAST_WORDS_BYTES {
                break;
            }
        }
        shared_types::clean::clean_line(words.trim(), LAST_WORDS_BYTES)
    }
}

/// The files in `/proc` beside the processes. There is only one of each for all containers and the host, and root
/// in any of them could give it another mode or owner.
fn of_the_kernel() -> Result<Vec<String>, EngineError> {
    let unread = |error: std::io::Error| EngineError::Refused(format!("/proc: {error}"));
    let mut paths = Vec::new();
    for entry in std::fs::read_dir("/proc").map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_process = name.bytes().all(|byte| byte.is_ascii_digit());
        // Links lead to what is a process's own.
        if !is_process && !entry.file_type().map_err(unread)?.is_symlink() {
            paths.push(format!("/proc/{name}"));
        }
    }
    paths.sort();
    Ok(paths)
}

pub(super) fn name(sandbox: SandboxId) -> String {
    format!("gantry-{sandbox}")
}

fn volume(sandbox: SandboxId, suffix: &str) -> String {
    format!("gantry-{sandbox}-{suffix}")
}

fn status(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

fn in_words(error: Error) -> EngineError {
    match error {
        Error::DockerResponseServerError { message, .. } => EngineError::Refused(message),
        other => {
            tracing::debug!(error = %other, "the Docker engine does not answer");
            EngineError::Away
        }
    }
}
