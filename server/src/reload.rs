//! Settings that change while the server runs: SIGHUP, and `gantry-server reload`.
//!
//! All of the settings are read and checked before the first of them changes, so a mistake in one leaves all as
//! they were. Flags and the environment are those of the start.

use std::{collections::BTreeSet, path::Path, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use server_api::HostNames;
use server_app::{App, UserLimits, keys::LinkKeys, models::KnownModels, vault::HeldKeys};
use shared_program::say;
use shared_telemetry::{LogFilter, LogFormat, Logs, server::RELOADS};
use shared_tls::ServerTls;
use shared_types::{Clock, Entropy};
use tokio::{sync::watch, time::sleep};

use crate::{
    certificate::{self, Certificate},
    running::RunningServer,
    settings::{Environment, RunArgs, ServerSettings, WrittenSettings},
    signals::{ProcessSignals, SignalRequest},
};

/// Sections and keys of `gantry.toml` that a reload takes up.
const RELOADED: [&str; 10] = [
    "model",
    "providers",
    "limits",
    "log.filter",
    "secrets",
    "server.names",
    "tls.certificate",
    "tls.key",
    // The certificate that they describe is made once, so a restart would not change it either.
    "tls.self_signed",
    "tls.names",
];

/// The longest wait of a verb for the outcome: longer than the resolution of host names.
const RELOADED_WITHIN: Duration = Duration::from_secs(30);
/// The interval between its looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The sources of this server's settings.
pub(crate) struct SettingsSources {
    pub(crate) args: RunArgs,
    pub(crate) environment: Environment,
    pub(crate) config: Option<PathBuf>,
    pub(crate) home: PathBuf,
}

impl SettingsSources {
    /// All settings as they are now.
    pub(crate) fn resolve(&self) -> anyhow::Result<ServerSettings> {
        let (args, environment) = (self.args.clone(), self.environment.clone());
        ServerSettings::resolve(args, environment, self.config.as_deref(), &self.home)
    }

    /// The server's folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.home.join("server")
    }
}

/// The parts of the server that a reload changes, and those that it reports to.
pub(crate) struct Reloader {
    pub(crate) origin: SettingsSources,
    /// The settings file at the server's start.
    pub(crate) started_with: WrittenSettings,
    pub(crate) logs: Logs,
    pub(crate) names: HostNames,
    pub(crate) certificate: Certificate,
    /// The certificate for new connections, where TLS ends here.
    pub(crate) tls: Option<watch::Sender<ServerTls>>,
    pub(crate) app: App,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) running: RunningServer,
}

/// Everything that is to change, and can.
struct ReloadPlan {
    filter: LogFilter,
    names: Vec<String>,
    certificate: Certificate,
    tls: Option<ServerTls>,
    limits: UserLimits,
    link_keys: LinkKeys,
    master_keys: HeldKeys,
    models: KnownModels,
    /// Keys of the settings file that changed, and count after a restart.
    for_a_restart: Vec<String>,
}

impl Reloader {
    /// Reloads when asked, and looks for a new certificate, until the server is asked to stop.
    pub(crate) async fn run_until_stop(&mut self, signals: &mut ProcessSignals) {
        loop {
            tokio::select! {
                asked = signals.next() => match asked {
                    SignalRequest::Reload => self.reload().await,
                    SignalRequest::Stop => break,
                },
                () = sleep(certificate::LOOK_EVERY) => self.renew(),
            }
        }
    }

    /// Applies all changed settings, or none. Reports to the log, the metrics and the verbs.
    async fn reload(&mut self) {
        self.running.begun += 1;
        self.tell();
        let reloaded = match self.read().await {
            Ok(next) => {
                RELOADS.add(&["done"], 1);
                Ok(self.take_up(next).await)
            }
            Err(error) => {
                RELOADS.add(&["refused"], 1);
                let error = format!("{error:#}");
                tracing::error!(
                    error,
                    "the settings were not reloaded; all are as they were"
                );
                Err(error)
            }
        };
        self.running.reloads = self.running.begun;
        self.running.reloaded = reloaded;
        self.tell();
    }

    fn tell(&self) {
        if let Err(error) = self.running.tell(&self.origin.folder()) {
            let error = format!("{error:#}");
            tracing::warn!(error, "gantry-server reload is not told what became of it");
        }
    }

    /// Reads and checks everything; nothing has changed afterwards.
    async fn read(&self) -> anyhow::Result<ReloadPlan> {
        let settings = self.origin.resolve()?;
        let folder = self.origin.folder();
        let filter = LogFilter::parse(settings.logs.filter.as_deref())?;
        // They count after a restart, and would keep the server from starting.
        let _: LogFormat = settings.logs.format.parse()?;
        let models = crate::models(settings.app.model, &self.clock)?;
        let certificate = Certificate::of(settings.tls, settings.names);
        let (tls, names) = certificate.load(&folder)?;
        let link_keys = LinkKeys::load(&folder.join("keys"), &*self.clock, &*self.entropy)?;
        let master_keys = self
            .app
            .vault
            .read(settings.master_key.source().await?)
            .await;
        let master_keys = master_keys.context("failed to use the master key")?;
        let mut for_a_restart = changed(&self.started_with, &settings.written);
        if tls.is_some() != self.tls.is_some() {
            for_a_restart.push("tls".to_owned());
        }
        let tls = tls.filter(|_| self.tls.is_some());
        Ok(ReloadPlan {
            filter,
            names,
            certificate,
            tls,
            limits: settings.app.user_limits,
            link_keys,
            master_keys,
            models: KnownModels {
                models,
                catalogue: Arc::new(settings.app.catalogue),
                prompt: settings.app.prompt,
            },
            for_a_restart,
        })
    }

    /// Uses a certificate whose files were replaced. An unusable one leaves the one before, and is reported once.
    fn renew(&mut self) {
        if self.tls.is_none() || !self.certificate.is_new() {
            return;
        }
        match self.certificate.load(&self.origin.folder()) {
            Ok((tls, names)) => {
                self.present(tls);
                self.names.replace(names);
                self.tell();
                RELOADS.add(&["done"], 1);
                tracing::info!("the certificate was replaced; new connections get the new one");
            }
            Err(error) => {
                RELOADS.add(&["refused"], 1);
                let error = format!("{error:#}");
                tracing::error!(
                    error,
                    "the files of the certificate changed and cannot be used; the one before stays"
                );
            }
        }
    }

    /// New connections get this certificate.
    fn present(&mut self, tls: Option<ServerTls>) {
        if let (Some(held), Some(new)) = (&self.tls, tls) {
            self.running.certificate = shared_types::Digest::from_slice(&new.certificate_sha256());
            held.send_replace(new);
        }
    }

    /// Applies the new settings; it cannot fail. Returns a text for the operator.
    async fn take_up(&mut self, next: ReloadPlan) -> String {
        self.certificate = next.certificate;
        self.present(next.tls);
        self.names.replace(next.names);
        let (limits, master_keys) = (next.limits, next.master_keys);
        self.app
            .reload(limits, &next.link_keys, master_keys, next.models)
            .await;
        self.logs.use_filter(next.filter);
        if next.for_a_restart.is_empty() {
            tracing::info!("the settings were reloaded");
            return String::new();
        }
        let settings = next.for_a_restart.join(", ");
        tracing::warn!(
            settings,
            "the settings were reloaded; some that changed need a restart"
        );
        format!("needs a restart: {settings}")
    }
}

/// The keys whose values differ, but for those that a reload takes up.
fn changed(before: &WrittenSettings, now: &WrittenSettings) -> Vec<String> {
    let sections: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let mut changed = Vec::new();
    for section in sections {
        let keys = |written: &WrittenSettings| -> WrittenSettings {
            let table = written.get(section).and_then(|section| section.as_table());
            table.cloned().unwrap_or_default()
        };
        let (before, now) = (keys(before), keys(now));
        let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        let differs = names
            .iter()
            .filter(|name| before.get(**name) != now.get(**name));
        changed.extend(differs.map(|name| format!("{section}.{name}")));
    }
    let is_reloaded = |key: &String| {
        let section = key.split('.').next().unwrap_or_default();
        RELOADED.contains(&key.as_str()) || RELOADED.contains(&section)
    };
    changed.retain(|key| !is_reloaded(key));
    changed
}

/// Has the server that runs on this folder reload its settings, and waits until it has. Returns a text for the
/// operator.
///
/// # Errors
/// Fails if no server runs there, or if it refused the settings; then all are as they were.
pub(crate) async fn reload(folder: &Path) -> anyhow::Result<String> {
    let before = ask(folder)?;
    for _ in 0..RELOADED_WITHIN.as_millis() / LOOK_EVERY.as_millis() {
        let now = RunningServer::of(folder).context("the server stopped before it had reloaded")?;
        if now.pid != before.pid {
            bail!("the server was restarted in the meantime, and has read all of its settings");
        }
        // One that had begun before may have read the settings before they were as they are now.
        if now.reloads > before.begun {
            return match now.reloaded {
                Ok(said) => Ok(said),
                Err(why) => {
                    bail!("the settings were not reloaded, and all are as they were: {why}")
                }
            };
        }
        sleep(LOOK_EVERY).await;
    }
    bail!(
        "the server has not said within {} s what became of the reload: look into its log",
        RELOADED_WITHIN.as_secs()
    )
}

/// Sends SIGHUP, and returns what the server told before.
fn ask(folder: &Path) -> anyhow::Result<RunningServer> {
    let running = RunningServer::of(folder)?;
    let pid = i32::try_from(running.pid).ok().and_then(Pid::from_raw);
    let pid = pid.context("server.running names no process")?;
    let process = pidfd_open(pid, PidfdFlags::empty());
    // The id may now belong to another process. The opened process is the server if the server still runs now.
    let now = RunningServer::of(folder)?;
    let sent = match process {
        Ok(process) if now.pid == running.pid => pidfd_send_signal(process, Signal::HUP),
        Ok(_) => Err(Errno::SRCH),
        Err(error) => Err(error),
    };
    sent.with_context(|| {
        format!(
            "the server's process {pid:?} cannot be told to reload: run this on the server's machine, as the user that runs it"
        )
    })?;
    Ok(now)
}

/// `gantry-server reload`.
///
/// # Errors
/// See [`reload`].
pub(crate) async fn run(folder: &Path) -> anyhow::Result<()> {
    let said = reload(folder).await?;
    match said.as_str() {
        "" => say!("reloaded")?,
        said => say!("reloaded; {said}")?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_and_needs_a_restart_is_named_by_its_key_and_not_by_its_value() {
        let written = |text: &str| -> WrittenSettings { toml::from_str(text).expect("it is TOML") };
        let before = written(
            "[database]\nurl = \"postgres://a\"\n[limits]\nnew_per_minute = 1\n[log]\nfilter = \"info\"\n",
        );
        assert!(changed(&before, &before).is_empty());
        let now = written(
            "[database]\nurl = \"postgres://b\"\n[limits]\nnew_per_minute = 2\n[log]\nformat = \"json\"\n[turns]\nat_once = 2\n",
        );
        assert_eq!(
            changed(&before, &now),
            ["database.url", "log.format", "turns.at_once"]
        );
    }
}
