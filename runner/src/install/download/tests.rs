use shared_types::entropy::SeededEntropy;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;
use crate::{endpoints::Endpoints, key::RunnerKey};

#[test]
fn a_signature_is_read_from_its_digits_and_from_nothing_else() {
    assert_eq!(from_hex(&"0f".repeat(64)), Some(vec![15; 64]));
    for wrong in ["", "0f", &"0g".repeat(64), &"é".repeat(64)] {
        assert_eq!(from_hex(wrong), None, "{wrong}");
    }
}

#[tokio::test]
async fn what_another_key_signed_or_was_signed_for_another_nonce_is_not_loaded() {
    let [ours, other] = [1, 2].map(|seed| RunnerKey::generate(&SeededEntropy::new(seed)));
    let identity = ServerIdentity(ours.public().try_into().expect("32 bytes"));
    assert!(matches!(
        offered(&other, &identity, false).await,
        Err(DownloadError::Unsigned(_))
    ));
    assert!(matches!(
        offered(&ours, &identity, true).await,
        Err(DownloadError::Unsigned(_))
    ));
    let offered = offered(&ours, &identity, false)
        .await
        .expect("it is signed");
    assert_eq!((offered.sha256, offered.bytes), (Digest::of(b"archive"), 7));
}

/// What is offered where a server signs with this key, over the nonce or over an old one.
async fn offered(
    key: &RunnerKey,
    identity: &ServerIdentity,
    replayed: bool,
) -> Result<Offered, DownloadError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let answered = async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut request = vec![0; 4096];
        let read = stream.read(&mut request).await.expect("a request");
        let request = String::from_utf8_lossy(&request[..read]).into_owned();
        let nonce = request
            .split("nonce=")
            .nth(1)
            .and_then(|rest| rest.get(..64));
        let nonce = Digest::from_hex(nonce.expect("a nonce")).expect("64 digits");
        let nonce = if replayed {
            Digest::of(b"another")
        } else {
            nonce
        };
        let sha256 = Digest::of(b"archive");
        let signed = signing::programs(nonce.as_bytes(), std::env::consts::ARCH, &sha256);
        let signature: String = key
            .sign(&signed)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let body = serde_json::json!({
            "archive": { "arch": std::env::consts::ARCH, "sha256": sha256.to_string(), "name": "gantry-runner-x", "bytes": 7 },
            "signature": signature,
        })
        .to_string();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream
            .write_all(answer.as_bytes())
            .await
            .expect("an answer");
        stream
    };
    let asked = async {
        let mut endpoints =
            Endpoints::parse(std::slice::from_ref(&url), false).expect("an address");
        let route = endpoints.next().await.expect("a route");
        Offered::by(&route, identity, &SeededEntropy::new(3)).await
    };
    tokio::join!(answered, asked).1
}
