use std::io;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;

const HERE: &str = "rep_1";
const THERE: &str = "rep_2";
const FIVE_MINUTES: Duration = Duration::from_secs(5 * 60);

fn now() -> Duration {
    #[expect(clippy::disallowed_methods, reason = "the library compares with it")]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH)
        .expect("it is later")
}

fn of(cluster: &str, replica: &str) -> PeerTls {
    let key = ClusterKey::from_pem(cluster).expect("a key");
    PeerTls::new(key, replica).expect("it makes certificates")
}

fn cluster() -> String {
    ClusterKey::generate().expect("a key").to_pem()
}

/// What each end says after it tried to send a byte and to read one: accepting, connecting.
async fn meet(
    server: Arc<ServerConfig>,
    client: (Arc<ClientConfig>, ServerName<'static>),
) -> (io::Result<u8>, io::Result<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let accepts = async {
        let (stream, _) = listener.accept().await?;
        let mut stream = TlsAcceptor::from(server).accept(stream).await?;
        stream.write_u8(1).await?;
        stream.flush().await?;
        stream.read_u8().await
    };
    let connects = async {
        let (config, name) = client;
        let stream = TcpStream::connect(address).await?;
        let mut stream = TlsConnector::from(config).connect(name, stream).await?;
        stream.write_u8(2).await?;
        stream.flush().await?;
        stream.read_u8().await
    };
    tokio::join!(accepts, connects)
}

#[tokio::test]
async fn two_replicas_of_one_cluster_meet_though_their_clocks_differ() {
    let cluster = cluster();
    let server = of(&cluster, THERE).server_config(now() + FIVE_MINUTES);
    let client = of(&cluster, HERE).client_config(THERE, now() - FIVE_MINUTES);
    let met = meet(
        server.expect("a certificate"),
        client.expect("a certificate"),
    )
    .await;
    assert_eq!(
        (met.0.expect("it is let in"), met.1.expect("it is let in")),
        (2, 1)
    );
}

#[tokio::test]
async fn a_replica_of_another_cluster_is_refused_on_either_side() {
    let (ours, other) = (cluster(), cluster());
    let client = of(&other, HERE).client_config(THERE, now());
    let server = of(&ours, THERE).server_config(now());
    let met = meet(
        server.expect("a certificate"),
        client.expect("a certificate"),
    )
    .await;
    // The end that connects is the first to see a certificate.
    assert!(met.0.is_err() && met.1.is_err(), "{met:?}");

    // One that trusts our cluster shows a certificate of its own.
    let mut client = of(&ours, HERE);
    let inner = Arc::get_mut(&mut client.0).expect("it is ours alone");
    let key = ClusterKey::from_pem(&other).expect("a key");
    inner.issuer = Issuer::new(authority(), key.key);
    let server = of(&ours, THERE).server_config(now());
    let client = client.client_config(THERE, now());
    let met = meet(
        server.expect("a certificate"),
        client.expect("a certificate"),
    )
    .await;
    assert!(met.0.is_err() && met.1.is_err(), "{met:?}");
}

#[tokio::test]
async fn another_replica_than_the_one_that_was_asked_for_is_refused() {
    let cluster = cluster();
    let server = of(&cluster, HERE).server_config(now());
    let client = of(&cluster, HERE).client_config(THERE, now());
    let met = meet(
        server.expect("a certificate"),
        client.expect("a certificate"),
    )
    .await;
    assert!(met.0.is_err() && met.1.is_err(), "{met:?}");
}

#[tokio::test]
async fn a_client_without_a_certificate_is_refused() {
    let cluster = cluster();
    let tls = of(&cluster, THERE);
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .expect("it is there")
        .with_root_certificates(tls.0.roots.clone())
        .with_no_client_auth();
    let (_, name) = tls.client_config(THERE, now()).expect("a name");
    let server = tls.server_config(now()).expect("a certificate");
    let met = meet(server, (Arc::new(config), name)).await;
    assert!(met.0.is_err() && met.1.is_err(), "{met:?}");
}

#[test]
fn no_text_of_a_key_is_printed() {
    let pem = cluster();
    let key = ClusterKey::from_pem(&pem).expect("a key");
    assert_eq!(format!("{key:?}"), "ClusterKey");
    let tls = PeerTls::new(key, HERE).expect("it makes certificates");
    assert_eq!(format!("{tls:?}"), "PeerTls(rep-1)");
    let broken = pem.replace(&pem[60..70], "");
    let error = ClusterKey::from_pem(&broken).expect_err("it is none");
    assert!(!format!("{error} {error:?}").contains(&pem[40..60]));
}
