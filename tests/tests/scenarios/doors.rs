//! What strangers can take of the server: memory, descriptors, time. A stranger is a connection on
//! which no credential was shown.

use std::time::Duration;

use futures_util::future::select_all;
use tests::{
    footprint::{peak_from_here, peak_of},
    gantry::{Gantry, Setup, descriptors_of},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::timeout,
};

/// HTTP/2's preface and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// Connections, and requests on each.
const CONNECTIONS: usize = 60;
const REQUESTS: u32 = 256;
/// Bytes of each body that are sent; more were announced.
const BODY_BYTES: usize = 15_000;
/// What a connection may cost, its own buffers and those of the program's first use included.
const EACH_BYTES: u64 = 128 * 1024;
/// A peer that is not read from for so long has met a bound.
const STALLED_FOR: Duration = Duration::from_millis(500);

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("it is short");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A call of gRPC to this path: POST by an index into HPACK's static table, the rest as it is.
fn call(stream: u32, path: &str) -> Vec<u8> {
    let kind = "application/grpc";
    let mut block = vec![
        0x83,
        0x86,
        0x04,
        u8::try_from(path.len()).expect("it is short"),
    ];
    block.extend(path.as_bytes());
    block.extend([0x0f, 0x10, u8::try_from(kind.len()).expect("it is short")]);
    block.extend(kind.as_bytes());
    frame(1, 4, stream, &block)
}

/// The beginning of a message.
fn begun(stream: u32) -> Vec<u8> {
    let body = [&[0, 0, 0, 0x40, 0][..], &vec![7; BODY_BYTES]].concat();
    frame(0, 0, stream, &body)
}

/// Sends all of this, or as much as is read.
async fn push(address: String, said: Vec<u8>) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let _ = timeout(STALLED_FOR, stream.write_all(&said)).await;
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_strangers_begin_and_never_end_cost_little_and_keep_nobody_out() {
    let gantry = Gantry::practice().await;
    let address = gantry.url().trim_start_matches("http://").to_owned();
    let streams = || (0..REQUESTS).map(|number| 2 * number + 1);
    let http2 = |path: &str| {
        let calls = streams().flat_map(|stream| call(stream, path));
        let bodies = streams().flat_map(begun);
        PREFACE.iter().copied().chain(calls).chain(bodies).collect()
    };
    let http1 = |path: &str| {
        let mut said =
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 16000\r\n\r\n");
        said.push_str(&"x".repeat(BODY_BYTES));
        said.into_bytes()
    };
    let attacks: [(&str, Vec<u8>); 5] = [
        ("gRPC", http2("/gantry.runner.v1.Enrolment/Enrol")),
        ("the same by HTTP/2", http2("/runner/v1/enrol")),
        ("HTTP/1.1", http1("/runner/v1/enrol")),
        ("signing in", http2("/api/v1/sign-in")),
        ("a head without an end", vec![b'x'; 64 * 1024]),
    ];
    gantry.client().runners().await.expect("it answers");
    for (what, said) in attacks {
        peak_from_here(gantry.server_pid());
        let before = peak_of(gantry.server_pid());
        let mut strangers = JoinSet::new();
        for _ in 0..CONNECTIONS {
            strangers.spawn(push(address.clone(), said.clone()));
        }
        let strangers = strangers.join_all().await;
        gantry
            .client()
            .runners()
            .await
            .expect("the owner is answered");
        // The kernel's counts lag a little, so that a peak may be told as lower than an earlier one.
        let grown = peak_of(gantry.server_pid()).saturating_sub(before);
        let each = grown / CONNECTIONS as u64;
        println!(
            "{what}: {each} bytes for each of {} strangers",
            strangers.len()
        );
        assert!(each <= EACH_BYTES, "{what}: {each} bytes for each stranger");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_that_want_every_descriptor_leave_the_owner_his() {
    let gantry = Gantry::practice().await;
    let address = gantry.url().trim_start_matches("http://").to_owned();
    let own = descriptors_of(gantry.server_pid());
    // A connection that works is nobody's to shed.
    let mut open = TcpStream::connect(&address).await.expect("it listens");
    let ask = format!(
        "GET /api/v1/me HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
        gantry.token()
    );
    open.write_all(ask.as_bytes()).await.expect("it is open");
    assert_eq!(answer(&mut open).await, "HTTP/1.1 200");
    let mut strangers = Vec::new();
    for _ in 0..1500 {
        strangers.push(TcpStream::connect(&address).await.expect("it listens"));
    }
    gantry
        .client()
        .runners()
        .await
        .expect("the owner is answered");
    open.write_all(ask.as_bytes()).await.expect("it is open");
    let mut heard = Vec::new();
    while !heard.ends_with(b"HTTP/1.1 200") {
        heard.push(open.read_u8().await.expect("it is answered"));
    }
    let theirs = descriptors_of(gantry.server_pid()) - own;
    // The default for one address, with those that are closing.
    assert!(theirs < 1200, "{theirs} descriptors for strangers");
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_proxy_the_address_that_it_names_is_what_counts() {
    let settings = "
[server]
behind_proxy = true
client_address_header = \"x-forwarded-for\"
[connections]
strangers_per_address = 2
";
    let setup = Setup {
        settings: settings.to_owned(),
        ..Setup::default()
    };
    let gantry = Gantry::with(setup).await;
    let address = gantry.url().trim_start_matches("http://").to_owned();
    let ask = |from: &str| {
        let head = format!(
            "POST /api/v1/sign-in HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: {from}\r\n\
             content-type: application/json\r\ncontent-length: 100\r\n\r\n"
        );
        push(address.clone(), head.into_bytes())
    };
    let mut others = ask("198.51.100.1").await;
    let mut own = Vec::new();
    for _ in 0..3 {
        own.push(ask("203.0.113.9, 192.0.2.1").await);
    }
    let answers = own.iter_mut().map(|stream| Box::pin(stream.read_u8()));
    let (_, refused, waiting) = select_all(answers).await;
    drop(waiting);
    assert_eq!(
        answer(&mut own.remove(refused)).await,
        "TTP/1.1 429",
        "one of its address"
    );
    for stream in own.iter_mut().chain([&mut others]) {
        let sent = stream.write_all(&[b'['; 100]).await;
        sent.expect("it goes on");
        assert_eq!(answer(stream).await, "HTTP/1.1 422");
    }
}

/// The beginning of the answer.
async fn answer(stream: &mut TcpStream) -> String {
    let mut heard = [0; 12];
    let read = stream.read(&mut heard).await.expect("an answer");
    String::from_utf8_lossy(&heard[..read])
        .trim_end()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_programs_of_runners_need_no_key_but_are_no_other_sites_and_no_other_file_is_given() {
    let downloads = tempfile::tempdir().expect("a folder");
    let name = "gantry-runner-x86_64-linux.tar.gz";
    std::fs::write(downloads.path().join(name), "an archive").expect("a file");
    std::fs::write(downloads.path().join("secret"), "a secret").expect("a file");
    let settings = format!("[server]\ndownloads = {:?}\n", downloads.path());
    let gantry = Gantry::with(Setup {
        settings,
        ..Setup::default()
    })
    .await;
    let sha256 = shared_types::Digest::of(b"an archive").to_string();
    let secret = shared_types::Digest::of(b"a secret").to_string();
    let client = reqwest::Client::new();
    let get = async |path: &str, host: Option<&str>| {
        let mut ask = client.get(format!("{}{path}", gantry.url()));
        if let Some(host) = host {
            ask = ask.header("host", host);
        }
        let answer = ask.send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("text"))
    };
    let archive = format!("/install/{sha256}/{name}");
    assert_eq!(get(&archive, None).await, (200, "an archive".to_owned()));
    assert_eq!(get(&archive, Some("evil.example")).await.0, 421);
    for path in [
        format!("/install/{secret}/secret"),
        format!("/install/{secret}/{name}"),
        format!("/install/{sha256}/secret"),
        format!("/install/{sha256}/..%2Fsecret"),
        format!("/install/{}/{name}", &sha256[..63]),
        "/install/runner.sh".to_owned(),
        "/install/".to_owned(),
    ] {
        assert_eq!(get(&path, None).await.0, 404, "{path}");
    }
    let nonce = "0".repeat(64);
    assert_eq!(
        get(&format!("/install/runner/x86_64?nonce={nonce}"), None)
            .await
            .0,
        200
    );
    assert_eq!(
        get(&format!("/install/runner/riscv64?nonce={nonce}"), None)
            .await
            .0,
        404
    );
    for wrong in [
        "",
        "?nonce=00",
        "?nonce=zz",
        &format!("?nonce={nonce}&more=1"),
    ] {
        assert_eq!(
            get(&format!("/install/runner/x86_64{wrong}"), None).await.0,
            422,
            "{wrong}"
        );
    }
}
