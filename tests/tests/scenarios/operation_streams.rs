//! The WebSocket of an operation: output from an offset on, input, sizes and signals, over cuts.

use serde_json::{Value, json};
use shared_api::{BinaryFrame, Channel, ScopeName, StreamName};
use shared_types::{Digest, FileDigest};
use tests::{
    gantry::Gantry,
    proxy::Proxy,
    socket::{Heard, Socket},
};
use tokio_tungstenite::tungstenite::Message;

/// What clients of operations hear.
const SAYS: &str = "OperationServerMessage";

/// Starts an operation, which is new, and returns the address of its stream.
async fn start(gantry: &Gantry, mut body: Value) -> String {
    body["runner"] = "laptop".into();
    let started = gantry.ask("post", "/api/v1/operations", Some(body.to_string()));
    let started = started.await;
    assert_eq!(started.status, 201, "{started:?}");
    let id = started.body["id"].as_str().expect("an id");
    format!("/api/v1/operations/{id}/stream")
}

async fn run(gantry: &Gantry, exec: Value) -> String {
    start(gantry, json!({ "exec": exec })).await
}

/// A client that follows one operation.
struct Client {
    socket: Socket,
    /// What was heard of stdout and stderr.
    output: [Vec<u8>; 2],
    /// The input below this offset is taken, as far as was heard.
    taken: Option<u64>,
    /// What was said of the operation at its end, and the code of the goodbye.
    ended: Option<(Value, Option<u16>)>,
}

impl Client {
    async fn open(gantry: &Gantry, path: &str) -> Self {
        Self::of(Socket::open(gantry, path, SAYS).await).await
    }

    async fn of(mut socket: Socket) -> Self {
        assert_eq!(socket.hears().await["type"], "operation", "first");
        Self {
            socket,
            output: Default::default(),
            taken: None,
            ended: None,
        }
    }

    /// Hears until it is so; false where the connection broke before.
    async fn until(&mut self, mut is_so: impl FnMut(&Self) -> bool) -> bool {
        while !is_so(self) {
            match self.socket.next().await {
                Heard::Text(said) => self.note(said),
                Heard::Binary(bytes) => {
                    let piece = BinaryFrame::decode(bytes).expect("a piece");
                    let stream = match piece.channel {
                        Channel::Output(StreamName::Stdout) => 0,
                        Channel::Output(StreamName::Stderr) => 1,
                        Channel::Input => panic!("the server sends no input"),
                    };
                    self.output[stream].extend(&piece.data);
                }
                Heard::Closed(code) => match &mut self.ended {
                    Some((_, closed)) => *closed = code,
                    None => return false,
                },
            }
        }
        true
    }

    fn note(&mut self, said: Value) {
        match said["type"].as_str() {
            Some("input_taken") => self.taken = said["offset"].as_u64(),
            Some("ended") => self.ended = Some((said["operation"].clone(), None)),
            Some("accepted" | "unreachable" | "reachable") => {}
            _ => panic!("{said}"),
        }
    }

    /// Hears the end and the goodbye.
    async fn ends(&mut self) -> Value {
        let closed = |client: &Self| matches!(client.ended, Some((_, Some(_))));
        assert!(self.until(closed).await, "the connection broke");
        let (operation, code) = self.ended.clone().expect("it has ended");
        assert_eq!(code, Some(1000), "{operation}");
        assert_eq!(operation["state"], "ended");
        operation["end"].clone()
    }

    async fn hears(&mut self, words: &str) {
        let heard = |client: &Self| client.stdout().contains(words);
        assert!(self.until(heard).await, "{:?}", self.stdout());
    }

    fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output[0]).into_owned()
    }

    /// Sends a piece of input; false where the connection is gone.
    async fn input(&mut self, offset: usize, data: &[u8]) -> bool {
        let piece = BinaryFrame {
            channel: Channel::Input,
            offset: offset as u64,
            data: data.to_vec().into(),
        };
        let message = Message::Binary(piece.encode());
        self.socket.try_to_say(message).await
    }

    async fn say(&mut self, said: Value) {
        self.socket.say(Message::text(said.to_string())).await;
    }

    /// Sends the input from where it is taken on, in large pieces, then its end; false where the
    /// connection broke before.
    async fn sends_all(&mut self, input: &[u8]) -> bool {
        if !self.until(|client| client.taken.is_some()).await {
            return false;
        }
        let mut offset = usize::try_from(self.taken.unwrap_or_default()).expect("it fits");
        for piece in input[offset..].chunks(64 * 1024) {
            if !self.input(offset, piece).await {
                return false;
            }
            offset += piece.len();
        }
        let end = json!({ "type": "input_end", "offset": offset });
        let message = Message::text(end.to_string());
        self.socket.try_to_say(message).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_readers_hear_the_same_and_one_that_comes_later_hears_all_of_it() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let exec = json!({ "script": "cat; echo bye >&2; exit 4", "input": true });
    let path = run(&gantry, exec).await;
    let mut writer = Client::open(&gantry, &path).await;
    let mut reader = Client::open(&gantry, &path).await;
    assert!(writer.until(|client| client.taken == Some(0)).await);
    assert!(writer.input(0, b"one\n").await);
    writer.hears("one\n").await;
    reader.hears("one\n").await;
    // Either may pass something on, and repeats do no harm.
    assert!(reader.input(0, b"one\ntwo\n").await);
    reader
        .say(json!({ "type": "input_end", "offset": 8 }))
        .await;
    let mut late = Client::open(&gantry, &format!("{path}?stdout=4&stderr=1")).await;
    for client in [&mut writer, &mut reader, &mut late] {
        let end = client.ends().await;
        assert_eq!((&end["code"], &end["stdout_bytes"]), (&json!(4), &json!(8)));
    }
    assert_eq!(writer.output, [b"one\ntwo\n".to_vec(), b"bye\n".to_vec()]);
    assert_eq!(reader.output, writer.output);
    assert_eq!(late.output, [b"two\n".to_vec(), b"ye\n".to_vec()]);
    let mut after = Client::open(&gantry, &path).await;
    assert_eq!(after.ends().await["code"], 4);
    assert_eq!(after.output, writer.output);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_takes_another_size_and_a_process_a_signal() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let script = "trap 'stty size; echo sized' WINCH; trap 'echo got it' INT; stty size; \
                  echo ready; until [ -e enough ]; do sleep 0.05; done; exit 5";
    let exec = json!({ "script": script, "terminal": { "rows": 24, "columns": 80 } });
    let mut client = Client::open(&gantry, &run(&gantry, exec).await).await;
    client.hears("24 80\r\nready").await;
    client
        .say(json!({ "type": "resize", "rows": 50, "columns": 132 }))
        .await;
    client.hears("50 132\r\nsized").await;
    client
        .say(json!({ "type": "signal", "signal": "interrupt" }))
        .await;
    client.hears("got it").await;
    // Had the signal ended it, the end could come before the answer to the signal.
    std::fs::write(runner.workspace().join("enough"), "").expect("it can be written");
    assert_eq!(client.ends().await["code"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn over_cuts_of_the_clients_connection_all_input_arrives_and_all_output_is_heard_once() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let path = run(&gantry, json!({ "argv": ["tee", "copy"], "input": true })).await;
    let input: Vec<u8> = (0..6_000_000_u32)
        .map(|number| (number / 5) as u8)
        .collect();
    let (mut output, mut cuts) = (Vec::<u8>::new(), 0);
    let end = loop {
        let proxy = Proxy::before(gantry.url()).await;
        if cuts < 3 {
            proxy.set(|weather| weather.cut_after = 1_500_000);
        }
        let from = format!("{path}?stdout={}", output.len());
        let socket = Socket::open_by_way_of(proxy.url(), &gantry, &from, SAYS).await;
        let mut client = Client::of(socket).await;
        let sent = client.sends_all(&input).await;
        let ended = sent && client.until(|client| client.ended.is_some()).await;
        output.extend(&client.output[0]);
        if ended {
            break client.ended.expect("it has ended").0;
        }
        cuts += 1;
        assert!(cuts < 10, "it does not get on");
    };
    assert!(cuts >= 3, "{cuts}");
    assert_eq!(end["end"]["code"], 0);
    assert!(output == input, "{} bytes", output.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_reads_nothing_holds_up_nobody() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let path = run(&gantry, json!({ "argv": ["seq", "1", "2000000"] })).await;
    let mut slow = Socket::open(&gantry, &path, SAYS).await;
    let mut quick = Client::open(&gantry, &path).await;
    assert_eq!(quick.ends().await["code"], 0);
    let expected: String = (1..=2_000_000)
        .map(|number| format!("{number}\n"))
        .collect();
    assert!(quick.output[0] == expected.as_bytes(), "not the same");
    assert_eq!(slow.hears().await["type"], "operation");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_goes_up_as_input_is_there_with_its_digest() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let file: Vec<u8> = (0..2_000_000_u32)
        .map(|number| (number / 3) as u8)
        .collect();
    let digest = FileDigest::from(Digest::of(&file)).to_string();
    let upload = json!({ "path": "a/file", "bytes": file.len(), "digest": digest });
    let path = start(&gantry, json!({ "upload": upload })).await;
    let mut client = Client::open(&gantry, &path).await;
    assert!(client.sends_all(&file).await);
    let end = client.ends().await;
    assert_eq!(
        (&end["kind"], &end["digest"]),
        (&json!("done"), &json!(digest))
    );
    let uploaded = std::fs::read(runner.workspace().join("a/file"));
    assert!(uploaded.expect("it is there") == file, "another file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_comes_down_as_output_and_waits_for_its_reader() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let file: Vec<u8> = (0..2_000_000_u32)
        .map(|number| (number / 3) as u8)
        .collect();
    let digest = FileDigest::from(Digest::of(&file)).to_string();
    std::fs::write(runner.workspace().join("file"), &file).expect("it can be written");
    let download = json!({ "download": { "path": "file" } });
    let path = start(&gantry, download).await;
    let reads = gantry.key("reads", &[ScopeName::Read]).await.key;
    let mut client = Client::open(&gantry, &path).await;
    assert_eq!(
        Socket::refused(&gantry, &reads, &path).await,
        403,
        "who may only read would take it away from its reader"
    );
    let end = client.ends().await;
    assert!(client.output[0] == file, "another file");
    assert_eq!(
        (&end["bytes"], &end["digest"]),
        (&json!(file.len()), &json!(digest))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_understood_or_does_not_apply_is_a_problem_and_the_connection_goes_on() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let path = run(&gantry, json!({ "argv": ["cat"], "input": true })).await;
    let mut client = Client::open(&gantry, &path).await;
    assert!(client.until(|client| client.taken == Some(0)).await);
    let output = BinaryFrame {
        channel: Channel::Output(StreamName::Stdout),
        offset: 0,
        data: Default::default(),
    };
    let mistakes = [
        (Message::text("nonsense"), "not understood"),
        (Message::text(r#"{"type":"dance"}"#), "dance"),
        (
            Message::text(r#"{"type":"signal","signal":"kill","surprise":1}"#),
            "surprise",
        ),
        (Message::binary(vec![0]), "9 bytes or more"),
        (Message::Binary(output.encode()), "begin with 0"),
        (
            Message::text(r#"{"type":"taken","stream":"stdout","offset":1}"#),
            "only that of a download",
        ),
        (
            Message::text(r#"{"type":"taken","stream":"stdout","offset":18446744073709551615}"#),
            "longer than",
        ),
        (
            Message::text(r#"{"type":"input_end","offset":18446744073709551615}"#),
            "longer than",
        ),
        (
            Message::text(r#"{"type":"resize","rows":0,"columns":80}"#),
            "1 to 65535",
        ),
        (
            Message::text(r#"{"type":"resize","rows":24,"columns":80}"#),
            "terminal",
        ),
    ];
    for (message, words) in mistakes {
        client.socket.say(message).await;
        let said = client.socket.hears().await;
        assert_eq!(said["type"], "problem", "{said}");
        let detail = said["problem"]["detail"].as_str().expect("a detail");
        assert!(detail.contains(words), "it should say {words:?}: {detail}");
    }
    client
        .say(json!({ "type": "input_end", "offset": 0 }))
        .await;
    assert_eq!(client.ends().await["code"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_for_who_may_see_the_operation_and_a_credential_has_so_many() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let path = run(&gantry, json!({ "argv": ["sleep", "1000"] })).await;
    assert_eq!(Socket::refused(&gantry, "nonsense", &path).await, 401);
    let nowhere = "/api/v1/operations/op_00000000000000000000000000/stream";
    assert_eq!(Socket::refused(&gantry, gantry.token(), nowhere).await, 404);
    let wrong = format!("{path}?stdout=-1");
    assert_eq!(Socket::refused(&gantry, gantry.token(), &wrong).await, 422);
    let mut open = Vec::new();
    for _ in 0..64 {
        open.push(Socket::unread(&gantry, &path).await);
    }
    assert_eq!(Socket::refused(&gantry, gantry.token(), &path).await, 429);
    let key = gantry.client().create_key("ci").await.expect("a key");
    let mut revoked = Socket::open_as(&gantry, &key.key, &path, SAYS).await;
    assert_eq!(revoked.hears().await["type"], "operation");
    gantry
        .client()
        .remove_key(key.entry.id)
        .await
        .expect("it is");
    let goodbye = loop {
        if let Heard::Closed(code) = revoked.next().await {
            break code;
        }
    };
    assert_eq!(goodbye, Some(1008));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_told_to_its_end_is_read_again_for_who_has_not_taken_all_of_it() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let file: Vec<u8> = (0..300_000_u32).map(|number| (number / 3) as u8).collect();
    std::fs::write(runner.workspace().join("file"), &file).expect("it can be written");
    let path = start(&gantry, json!({ "download": { "path": "file" } })).await;
    let end = Client::open(&gantry, &path).await.ends().await;
    // As if the connection had been cut when this much of it had come.
    let taken = 100_000;
    let mut client = Client::open(&gantry, &format!("{path}?stdout={taken}")).await;
    assert_eq!(client.ends().await["digest"], end["digest"]);
    assert!(client.output[0] == file[taken..], "other bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_comes_down_as_output_and_waits_for_its_reader_over_a_cut() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let file: Vec<u8> = (0..2_000_000_u32)
        .map(|number| (number / 3) as u8)
        .collect();
    let digest = FileDigest::from(Digest::of(&file)).to_string();
    std::fs::write(runner.workspace().join("file"), &file).expect("it can be written");
    let download = json!({ "download": { "path": "file" } });
    let path = start(&gantry, download).await;
    let mut client = Client::open(&gantry, &path).await;
    assert!(
        client
            .until(|client| client.output[0].len() > 500_000)
            .await
    );
    let taken = client.output[0].len();
    client
        .say(json!({ "type": "taken", "stream": "stdout", "offset": taken }))
        .await;
    let mut output = std::mem::take(&mut client.output[0]);
    drop(client);
    let mut client = Client::open(&gantry, &format!("{path}?stdout={taken}")).await;
    let end = client.ends().await;
    output.extend(&client.output[0]);
    assert!(output == file, "{} bytes", output.len());
    assert_eq!(
        (&end["bytes"], &end["digest"]),
        (&json!(file.len()), &json!(digest))
    );
}
