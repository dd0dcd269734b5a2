//! Runners whose way to the server passes no gRPC, and what only a WebSocket can do wrong.

use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use proto::{PROTOCOL_VERSION, v1};
use shared_types::{
    event::CallOutcome,
    limits::{MAX_FRAME_BYTES, MAX_HELLO_BYTES},
};
use tests::{
    fleet::Route,
    footprint::behaving,
    gantry::{Gantry, Setup},
    http1_proxy::Http1Proxy,
    peer::{Peer, messages_raw},
    work::Work,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::frame::{
        Frame,
        coding::{Data, OpCode},
    },
};
use tonic::Code;

/// Numbers of a command that writes some megabytes.
const LINES: u32 = 300_000;

#[tokio::test(flavor = "multi_thread")]
async fn where_only_http1_passes_a_runner_enrols_links_and_its_output_arrives_complete() {
    let gantry = Gantry::with(Setup::with_short_links()).await;
    let proxy = Http1Proxy::before(gantry.url()).await;
    let mut runner = gantry.runner_by_way_of(proxy.url(), "laptop").await;
    assert_eq!(proxy.upgraded(), 1);
    let work = Work(51);
    let command = work.at_once(LINES);
    let told = gantry.talk().await.say(&format!("run {command}")).await;
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    work.is_done_in_part(&runner, LINES.into(), text);
    assert!(runner.log().contains("transport=\"websocket\""));

    let links = proxy.upgraded();
    assert_eq!(links, 1, "it was one link all along");
    runner.kill().await;
    gantry.until_online("laptop", false).await;
    runner.options(&["--transport", "grpc"]);
    runner.start();
    runner.until_logged("trying again").await;
    assert_eq!(proxy.upgraded(), links, "it does only what it is told");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_grpc_passes_it_is_what_carries_a_link_unless_a_person_wants_the_other() {
    let gantry = Gantry::practice().await;
    let mut runner = gantry.runner("laptop").await;
    runner.until_logged("transport=\"grpc\"").await;
    runner.kill().await;
    gantry.until_online("laptop", false).await;
    runner.options(&["--transport", "websocket"]);
    runner.start();
    runner.until_logged("transport=\"websocket\"").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_are_no_frames_end_a_websocket_with_a_reason_and_cost_nothing() {
    let (gantry, _laptop, before) = behaving().await;
    let peer = Peer::enrol(&gantry, "peer").await;
    let route = Route::plain(gantry.url());
    let piece = |opcode, last, bytes: usize| {
        let data = OpCode::Data(opcode);
        Message::Frame(Frame::message(vec![0; bytes], data, last))
    };
    let pieces = |bytes: usize| {
        let mut pieces = vec![piece(Data::Binary, false, 1)];
        pieces.extend((0..MAX_FRAME_BYTES / bytes).map(|_| piece(Data::Continue, false, bytes)));
        pieces
    };
    let cases = [
        (
            Code::InvalidArgument,
            "must be a binary message",
            vec![Message::text("hello")],
        ),
        (
            Code::ResourceExhausted,
            "64 KiB",
            vec![message(MAX_FRAME_BYTES + 1)],
        ),
        (
            Code::ResourceExhausted,
            "64 KiB",
            vec![message(MAX_HELLO_BYTES + 1)],
        ),
        (Code::ResourceExhausted, "64 KiB", pieces(4096)),
        (Code::ResourceExhausted, "64 KiB", pieces(1)),
        (
            Code::ResourceExhausted,
            "64 KiB",
            vec![Message::Ping(Bytes::from(vec![0; 100])); 2000],
        ),
        (
            Code::InvalidArgument,
            "",
            vec![piece(Data::Continue, true, 1)],
        ),
        (
            Code::InvalidArgument,
            "",
            vec![piece(Data::Reserved(3), true, 1)],
        ),
        (
            Code::Internal,
            "decode",
            vec![Message::Binary(Bytes::from_static(&[0xff; 64]))],
        ),
        (
            Code::InvalidArgument,
            "must be a proof",
            vec![Message::Binary(Bytes::new())],
        ),
        (Code::FailedPrecondition, "version 0", vec![hello(0)]),
        (Code::Unauthenticated, "", vec![hello(PROTOCOL_VERSION)]),
    ];
    for (code, words, messages) in cases {
        let token = peer.access_token().await;
        let said = messages_raw(&route, &token, messages).await;
        assert_eq!(said.code(), code, "{words}: {said}");
        assert!(said.message().contains(words), "{words}: {said}");
        assert!(!said.message().is_empty());
    }
    drop(peer);
    before.is_restored(&gantry).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_no_token_or_asks_for_no_websocket_gets_none() {
    let gantry = Gantry::practice().await;
    let peer = Peer::enrol(&gantry, "peer").await;
    let token = peer.access_token().await;
    let route = Route::plain(gantry.url());
    for token in ["", "x", &token[1..]] {
        let refused = messages_raw(&route, token, Vec::new()).await;
        assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    }
    let url = format!("{}{}", gantry.url(), proto::http1::LINK);
    let plain = reqwest::Client::new().get(&url).bearer_auth(&token);
    let answer = plain.send().await.expect("an answer");
    assert_eq!(answer.status(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_no_messages_or_too_long_are_refused() {
    let gantry = Gantry::practice().await;
    let client = reqwest::Client::new();
    for path in [
        proto::http1::IDENTIFY,
        proto::http1::ENROL,
        proto::http1::AUTHENTICATE,
    ] {
        for body in [vec![0xff; 64], vec![0; MAX_HELLO_BYTES + 1], Vec::new()] {
            let call = client.post(format!("{}{path}", gantry.url())).body(body);
            let answer = call.send().await.expect("an answer");
            assert!(answer.status().is_client_error(), "{path}: {answer:?}");
            assert!(answer.headers().contains_key("grpc-status"), "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_takes_nothing_and_never_hangs_up_is_let_go() {
    let (gantry, _laptop, before) = behaving().await;
    let peer = Peer::enrol(&gantry, "peer").await;
    let token = peer.access_token().await;
    let address = gantry.url().trim_start_matches("http://").to_owned();
    let mut silent = TcpStream::connect(&address).await.expect("it listens");
    let request = format!(
        "GET {} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        proto::http1::LINK
    );
    let asked = silent.write_all(request.as_bytes()).await;
    asked.expect("it can be written");
    // The challenge, then the reason after ten seconds, then the end, without a word of ours.
    let mut heard = Vec::new();
    let end = timeout(Duration::from_secs(20), silent.read_to_end(&mut heard)).await;
    end.expect("an end in time").expect("it ends in order");
    let heard = String::from_utf8_lossy(&heard);
    assert!(heard.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{heard}");
    assert!(heard.contains("no hello came within 10 s"), "{heard}");
    drop((silent, peer));
    before.is_restored(&gantry).await;
}

fn message(bytes: usize) -> Message {
    Message::Binary(vec![0; bytes].into())
}

/// A first frame without a signature.
fn hello(version: u32) -> Message {
    let proof = v1::Proof {
        protocol_version: version,
        ..v1::Proof::default()
    };
    let kind = Some(v1::runner_frame::Kind::Proof(Box::new(proof)));
    Message::Binary(v1::RunnerFrame { kind }.encode_to_vec().into())
}
