//! The models that the model server has. A task asks for them from time to time, and at the beginning of each link.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Deserialize;
use shared_link::runner::ModelsReport;
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};

use super::ModelServer;

/// The time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// The longest time for a list.
const LIST_WITHIN: Duration = Duration::from_secs(10);

/// The largest list, in bytes.
const LIST_BYTES: usize = 1024 * 1024;

/// The models, as last seen. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct KnownModels {
    /// None before the first look is over.
    pub(crate) report: watch::Receiver<Option<ModelsReport>>,
    look: Arc<Notify>,
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<ListedModel>,
}

#[derive(Deserialize)]
struct ListedModel {
    id: String,
}

impl KnownModels {
    /// Looks until no receiver is left.
    pub(crate) fn of(server: ModelServer) -> Self {
        let (tell, report) = watch::channel(None);
        let look = Arc::new(Notify::new());
        let asked = look.clone();
        tokio::spawn(async move {
            while !tell.is_closed() {
                let listed = server.models().await;
                tell.send_if_modified(|known: &mut Option<ModelsReport>| {
                    let is_first = known.is_none();
                    let before = known.take().unwrap_or_default();
                    let now = match listed {
                        Ok(names) => ModelsReport::bounded(names, ""),
                        Err(problem) => ModelsReport::bounded(before.models.clone(), &problem),
                    };
                    // The server may have stored more from an earlier run.
                    let changed = is_first || now != before;
                    if changed && !now.problem.is_empty() {
                        tracing::warn!(
                            reason = now.problem,
                            "the models of the model server are not known now; looking again"
                        );
                    }
                    *known = Some(now);
                    changed
                });
                tokio::select! {
                    () = sleep(LOOK_EVERY) => {}
                    () = asked.notified() => {}
                }
            }
        });
        Self { report, look }
    }

    /// None at all.
    pub(crate) fn none() -> Self {
        Self {
            report: watch::channel(None).1,
            look: Arc::default(),
        }
    }

    /// Has the task look soon.
    pub(crate) fn look(&self) {
        self.look.notify_one();
    }
}

impl ModelServer {
    /// The names of the models, or the reason why they are not known, for people.
    async fn models(&self) -> Result<Vec<String>, String> {
        let listing = timeout(LIST_WITHIN, self.list());
        listing.await.unwrap_or_else(|_| {
            Err("the model server does not answer: check that it runs".to_owned())
        })
    }

    async fn list(&self) -> Result<Vec<String>, String> {
        let away = |failure: shared_link::runner::AskFailure| {
            format!(
                "the model server does not answer ({}): check that it runs",
                failure.reason
            )
        };
        let asked = self.send(Method::GET, "models", Bytes::new(), None).await;
        let mut answer = asked.map_err(away)?;
        match answer.response.status() {
            StatusCode::OK => {}
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                return Err(format!(
                    "the model server does not accept the key (status {}): check --model-key-file",
                    status.as_u16()
                ));
            }
            status => {
                return Err(format!(
                    "the model server does not list its models (status {}): check --model-server, which usually ends in /v1",
                    status.as_u16()
                ));
            }
        }
        let mut list = Vec::new();
        while let Some(data) = answer.next().await.map_err(away)? {
            list.extend_from_slice(&data);
            if list.len() > LIST_BYTES {
                return Err("the model server's list of models is too large".to_owned());
            }
        }
        let list: ModelList = serde_json::from_slice(&list).map_err(|_| {
            "the model server's list of models cannot be read: check --model-server, which usually ends in /v1".to_owned()
        })?;
        Ok(list.data.into_iter().map(|model| model.id).collect())
    }
}
