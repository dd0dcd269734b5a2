//! Doubles: a site on loopback whose answers are bytes, and names that resolve as a test says.

use std::{
    collections::BTreeMap,
    io,
    net::IpAddr,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

use crate::reach::Lookup;

/// An answer of a site.
pub(crate) enum Answer {
    /// These bytes; then the connection ends.
    Bytes(Vec<u8>),
    /// These bytes; then nothing more.
    Hangs(Vec<u8>),
}

/// A site on loopback. It stops when it is dropped.
pub(crate) struct Site {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    serving: AbortHandle,
}

impl Site {
    /// A site that answers the head of each request so.
    pub(crate) async fn start(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (asked, answer) = (requests.clone(), Arc::new(answer));
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (asked, answer) = (asked.clone(), answer.clone());
                tokio::spawn(async move {
                    let _ = serve(stream, &asked, &*answer).await;
                });
            }
        });
        Self {
            port,
            requests,
            serving: serving.abort_handle(),
        }
    }

    /// The address of this path, at this host.
    pub(crate) fn at(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        self.at("127.0.0.1", path)
    }

    /// The requests until now, with their bodies.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no test panics here").clone()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    asked: &Mutex<Vec<String>>,
    answer: &(impl Fn(&str) -> Answer + Send + Sync),
) -> io::Result<()> {
    let mut request = String::new();
    let mut buffer = [0; 4096];
    while !is_whole(&request) {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        request += &String::from_utf8_lossy(&buffer[..read]);
    }
    asked
        .lock()
        .expect("no test panics here")
        .push(request.clone());
    match answer(&request) {
        Answer::Bytes(bytes) => {
            stream.write_all(&bytes).await?;
            stream.shutdown().await
        }
        Answer::Hangs(bytes) => {
            stream.write_all(&bytes).await?;
            std::future::pending().await
        }
    }
}

fn is_whole(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>())
    });
    body.len() >= length.and_then(Result::ok).unwrap_or(0)
}

/// An answer of this status, with these lines of its head and this body, whose length it states.
pub(crate) fn answer(status: &str, head: &str, body: &[u8]) -> Answer {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\n{head}content-length: {length}\r\nconnection: close\r\n\r\n");
    Answer::Bytes([head.as_bytes(), body].concat())
}

/// Names, and the addresses of each at its first, second and later look-ups.
#[derive(Default)]
pub(crate) struct Names {
    answers: BTreeMap<&'static str, Vec<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    pub(crate) fn new(names: &[(&'static str, &[&[&str]])]) -> Arc<Self> {
        let parse = |text: &&str| text.parse().expect("an address");
        let answers = names.iter().map(|(name, answers)| {
            let answers = answers.iter().map(|it| it.iter().map(parse).collect());
            (*name, answers.collect())
        });
        Arc::new(Self {
            answers: answers.collect(),
            asked: Mutex::default(),
        })
    }

    /// The names that were looked up.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no test panics here").clone()
    }
}

#[async_trait]
impl Lookup for Names {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut asked = self.asked.lock().expect("no test panics here");
        let before = asked.iter().filter(|it| *it == name).count();
        asked.push(name.to_owned());
        let answers = self.answers.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(answers[before.min(answers.len() - 1)].clone())
    }
}
