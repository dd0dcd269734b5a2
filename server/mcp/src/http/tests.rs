//! Bad servers of the web.

use std::sync::atomic::AtomicU64;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::*;
use crate::{Client, NobodyThere, Options, Way};

const WITHIN: Duration = Duration::from_secs(20);

/// A server of the earlier era that answers a call of a tool with this head and this piece, again and again until nobody
/// reads on. Returns its address, and the bytes that it got rid of.
async fn floods(head: &'static str, piece: &'static [u8]) -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let written = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&written);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, head, piece, Arc::clone(&count)));
        }
    });
    (format!("http://{address}/mcp"), written)
}

async fn answer(mut stream: TcpStream, head: &str, piece: &[u8], written: Arc<AtomicU64>) {
    let mut asked = vec![0; 16 * 1024];
    let bytes = stream.read(&mut asked).await.unwrap_or_default();
    let asked = String::from_utf8_lossy(&asked[..bytes]).into_owned();
    let json = |result: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        let length = body.len();
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
    };
    let says = match () {
        () if asked.contains("\"tools/call\"") => {
            let _ = stream.write_all(head.as_bytes()).await;
            while stream.write_all(piece).await.is_ok() {
                written.fetch_add(piece.len() as u64, Ordering::SeqCst);
            }
            return;
        }
        () if asked.contains("\"initialize\"") => {
            json(r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#)
        }
        () if asked.contains("notifications/") => {
            "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
        () => "HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n".to_owned(),
    };
    let _ = stream.write_all(says.as_bytes()).await;
}

async fn called(url: &str, within: Duration) -> Result<crate::Content, McpError> {
    let here = ["127.0.0.0/8".parse().expect("a network")];
    let web = CheckedClient::new(here.to_vec()).expect("a client");
    let remote = Remote::new(web, url, &BTreeMap::new()).expect("an address");
    let options = Options {
        era: Some(Era::Legacy),
        person: Arc::new(NobodyThere),
        start_within: WITHIN,
    };
    let client = Client::connect(Way::Http(remote), options).await;
    let client = client.expect("it connects");
    client.call("t", &serde_json::Map::new(), within).await
}

#[tokio::test]
async fn a_flood_is_cut_off_long_before_its_end() {
    static PIECE: [u8; 64 * 1024] = [b'x'; 64 * 1024];
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 104857600\r\n\r\n{\"",
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 104857600\r\n\r\ndata: ",
    ] {
        let (url, written) = floods(head, &PIECE).await;
        let flooded = called(&url, WITHIN).await;
        assert_eq!(flooded, Err(McpError::TooLarge(MAX_MESSAGE_BYTES)));
        let written = written.load(Ordering::SeqCst);
        // What the sockets hold is written as well.
        assert!(written < 32 * 1024 * 1024, "{written}");
    }
}

#[tokio::test]
async fn a_stream_that_speaks_for_ever_has_an_end_and_its_words_are_no_answer() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let word =
        b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n";
    let (url, _) = floods(head, word).await;
    let within = Duration::from_millis(300);
    assert_eq!(called(&url, within).await, Err(McpError::TimedOut(within)));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (elsewhere, asked) = floods("HTTP/1.1 200 OK\r\n\r\n", b"x").await;
    let head = format!("HTTP/1.1 307 Go\r\nLocation: {elsewhere}\r\nContent-Length: 1\r\n\r\n");
    let (url, _) = floods(head.leak(), b"x").await;
    assert_eq!(called(&url, WITHIN).await, Err(McpError::Status(307)));
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}
