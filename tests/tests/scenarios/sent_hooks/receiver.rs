//! An address to which hooks are sent. It counts them, and holds its answer where it is told to.

use std::sync::{Arc, Mutex, MutexGuard};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, Uri},
    routing::post,
};
use tokio::{net::TcpListener, task::AbortHandle};

/// See the module. It stops when it is dropped.
pub(crate) struct Receiver {
    base: String,
    told: Arc<Mutex<Told>>,
    serving: AbortHandle,
}

/// All that it was told, and what it is to do.
#[derive(Default)]
pub(crate) struct Told {
    /// The path and the headers of each request.
    pub(crate) requests: Vec<(String, HeaderMap)>,
    /// True if it answers nothing.
    pub(crate) holds: bool,
    /// The body of its answers.
    pub(crate) answer: String,
}

impl Told {
    /// The values of a header, in the order of the requests.
    pub(crate) fn values(&self, name: &str) -> Vec<String> {
        let values = self
            .requests
            .iter()
            .filter_map(|(_, headers)| Some(headers.get(name)?.to_str().ok()?.to_owned()));
        values.collect()
    }
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("it is bound"));
        let told = Arc::<Mutex<Told>>::default();
        let app = Router::new()
            .route("/{*path}", post(receive))
            .with_state(Arc::clone(&told));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await });
        Self {
            base,
            told,
            serving: serving.abort_handle(),
        }
    }

    pub(crate) fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().expect("no test panicked with it")
    }

    /// The address of this path.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}/{path}", self.base)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn receive(State(told): State<Arc<Mutex<Told>>>, uri: Uri, headers: HeaderMap) -> String {
    let answer = {
        let mut told = told.lock().expect("no test panicked with it");
        told.requests.push((uri.to_string(), headers));
        (!told.holds).then(|| told.answer.clone())
    };
    match answer {
        Some(answer) => answer,
        None => std::future::pending().await,
    }
}
