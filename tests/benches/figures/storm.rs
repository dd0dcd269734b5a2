//! Every runner comes back at once: the server was killed and is started again on the same port.
//!
//! The runners wait as the daemon does (full jitter below half a second at first, then longer), so
//! some of our time is theirs. The peer does not wait: as many bare TLS handshakes, all at once,
//! each followed by one synced commit to a database like the server's. A runner's return is
//! three commits, four signatures and an HTTP/2 connection with three calls.

use std::{path::Path, sync::Arc};

use server_store::{AttemptKind, Store};
use shared_tls::{ServerTls, Trust};
use shared_types::{Clock as _, SystemClock};
use tests::{
    fleet::{Fleet, connector},
    gantry::Gantry,
    peer::Over,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, rustls::pki_types::ServerName};

use crate::{
    resident::memory,
    table::{Figure, Goal, Stopwatch, Unit},
};

const RUNNERS: usize = 1_000;
const ROUNDS: usize = 3;

/// How long until all are back, and at what price.
pub(crate) async fn figures(watch: &Stopwatch) -> Vec<Figure> {
    let what = format!(
        "{RUNNERS} runners linked again after SIGKILL of the server (peer: bare TLS handshakes + a synced commit each)"
    );
    let mut time = Figure::new(what, Unit::Seconds, Goal::None);
    let what = format!("memory of the server at most while {RUNNERS} runners came back");
    let mut peak = Figure::new(what, Unit::Memory, Goal::None);
    let mut gantry = Gantry::with_tls().await;
    let mut fleet = Fleet::enrol(&gantry, Over::Grpc, RUNNERS).await;
    fleet.link().await;
    for _ in 0..ROUNDS {
        gantry.kill_server().await;
        fleet.until_linked(false).await;
        gantry.start_server().await;
        let ours = watch.time(fleet.until_linked(true)).await.0;
        let folder = tempfile::tempdir().expect("a temporary folder");
        time.round(ours, bare(folder.path(), watch).await);
        peak.lone_round(memory(gantry.server_pid(), "VmHWM"));
    }
    let tally = fleet.tally();
    assert_eq!(
        tally.refused,
        Vec::<String>::new(),
        "nobody is refused for good"
    );
    assert_eq!(tally.went_back, 0, "every generation is above the last");
    assert_eq!(tally.linked, RUNNERS);
    vec![time, peak]
}

/// Seconds for the same number of handshakes and commits with nothing around them.
async fn bare(folder: &Path, watch: &Stopwatch) -> f64 {
    let tls = ServerTls::self_signed(folder, &["127.0.0.1".to_owned()]).expect("a certificate");
    let trust = connector(Trust::Pinned(tls.certificate_sha256()));
    let store = Store::open(&folder.join("bench.db"))
        .await
        .expect("a database");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let acceptor = TlsAcceptor::from(tls.config());
    let serving = tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.expect("it listens");
            tokio::spawn(serve(acceptor.clone(), socket, store.clone()));
        }
    });
    let trust = Arc::new(trust);
    let work = async {
        let mut callers = JoinSet::new();
        for _ in 0..RUNNERS {
            let trust = Arc::clone(&trust);
            callers.spawn(async move {
                let socket = TcpStream::connect(address).await.expect("it listens");
                let name = ServerName::try_from("127.0.0.1").expect("an address");
                let mut stream = trust.connect(name, socket).await.expect("a handshake");
                stream.read_u8().await.expect("the commit's word");
            });
        }
        callers.join_all().await
    };
    let took = watch.time(work).await.0;
    serving.abort();
    took
}

async fn serve(acceptor: TlsAcceptor, socket: TcpStream, store: Store) {
    let mut stream = acceptor.accept(socket).await.expect("a handshake");
    let now = SystemClock::new().now();
    let stored = store.record_attempt(AttemptKind::Enrol, "bench", now).await;
    stored.expect("it is stored");
    stream.write_u8(0).await.expect("the caller waits");
    let _ = stream.shutdown().await;
}
