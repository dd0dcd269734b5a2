//! Operations of programs over REST: each is one request, placed once, and its output is read while it
//! runs and afterwards.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use shared_types::Digest;
use tests::{
    gantry::{Answer, Gantry, eventually},
    openapi::Document,
};

/// Starts an operation under this key.
async fn start(gantry: &Gantry, key: &str, body: &Value) -> Answer {
    let request = gantry.request("post", "/api/v1/operations");
    let request = request.bearer_auth(gantry.token());
    Answer::to(request.header("Idempotency-Key", key).json(body)).await
}

/// Starts a script, which is new, and returns the operation's address.
async fn run(gantry: &Gantry, exec: Value) -> String {
    let body = json!({ "runner": "laptop", "exec": exec }).to_string();
    let started = gantry.ask("post", "/api/v1/operations", Some(body)).await;
    assert_eq!(started.status, 201, "{started:?}");
    let id = started.body["id"].as_str().expect("an id");
    format!("/api/v1/operations/{id}")
}

/// The end of an operation.
async fn ended(gantry: &Gantry, operation: &str) -> Value {
    eventually("it ends", async || {
        let seen = gantry.ask("get", operation, None).await.body;
        (seen["state"] == "ended").then(|| seen["end"].clone())
    })
    .await
}

fn text(output: &Value) -> String {
    let data = output["data"].as_str().expect("base64");
    let data = STANDARD.decode(data).expect("base64");
    String::from_utf8(data).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_under_one_key_runs_once_and_another_one_is_refused() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let script = |script: &str| json!({ "runner": "laptop", "exec": { "script": script } });
    let body = script("echo ran >> runs; exit 3");
    let (one, two) = tokio::join!(start(&gantry, "k", &body), start(&gantry, "k", &body));
    for started in [&one, &two] {
        assert!([200, 201].contains(&started.status), "{started:?}");
    }
    assert_eq!(one.body["id"], two.body["id"]);
    let operation = format!(
        "/api/v1/operations/{}",
        one.body["id"].as_str().expect("an id")
    );
    let end = ended(&gantry, &operation).await;
    assert_eq!((&end["kind"], &end["code"]), (&json!("exited"), &json!(3)));
    assert_eq!(end["words"], "exit code 3");
    let again = start(&gantry, "k", &body).await;
    assert_eq!((again.status, &again.body["end"]), (200, &end));
    assert_eq!(runner.file("runs").as_deref(), Some("ran\n"));

    let other = start(&gantry, "k", &script("echo other >> runs")).await;
    assert_eq!(other.status, 409, "{other:?}");
    let without_a_key = [
        run(&gantry, body["exec"].clone()).await,
        run(&gantry, body["exec"].clone()).await,
    ];
    assert_ne!(without_a_key[0], without_a_key[1]);
    for operation in &without_a_key {
        ended(&gantry, operation).await;
    }
    assert_eq!(runner.file("runs").as_deref(), Some("ran\nran\nran\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_is_refused_and_nothing_is_placed() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let good = json!({ "runner": "laptop", "exec": { "script": "true" } });
    for key in ["a b", "", "ä", &"k".repeat(129)] {
        let answer = start(&gantry, key, &good).await;
        assert_eq!(answer.status, 422, "{key:?}: {answer:?}");
        let detail = answer.body["detail"].as_str().expect("a detail");
        assert!(detail.contains("Idempotency-Key"), "{detail}");
    }
    for (body, status) in [
        (json!({ "runner": "laptop" }), 422),
        (json!({ "runner": "laptop", "exec": {} }), 422),
        (json!({ "runner": "laptop", "exec": { "argv": [""] } }), 422),
        (
            json!({ "runner": "nobody", "exec": { "script": "true" } }),
            404,
        ),
    ] {
        let answer = start(&gantry, "k", &body).await;
        assert_eq!(answer.status, status, "{body}: {answer:?}");
    }
    let listed = gantry.ask("get", "/api/v1/operations", None).await;
    assert_eq!(listed.body["operations"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_read_from_an_offset_and_waited_for() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let exec = json!({ "script": "echo one; echo err >&2; while [ ! -e go-on ]; do sleep 0.02; done; echo two" });
    let operation = run(&gantry, exec).await;
    let output = |query: &str| {
        let path = format!("{operation}/output?{query}");
        let gantry = &gantry;
        async move { gantry.ask("get", &path, None).await }
    };
    let first = output("wait_ms=30000").await;
    assert_eq!(text(&first.body), "one\n");
    let err = output("stream=stderr&wait_ms=30000").await;
    assert_eq!(text(&err.body), "err\n");
    let go_on = async {
        let open = gantry
            .ask("get", "/api/v1/operations?state=open", None)
            .await;
        assert_eq!(open.body["operations"].as_array().map(Vec::len), Some(1));
        std::fs::write(runner.workspace().join("go-on"), "").expect("it can be written");
    };
    let (second, ()) = tokio::join!(output("offset=4&wait_ms=30000"), go_on);
    assert_eq!(
        (text(&second.body).as_str(), &second.body["base"]),
        ("two\n", &json!(4))
    );
    ended(&gantry, &operation).await;
    let rest = output("offset=8&wait_ms=60000").await;
    assert_eq!(
        (&rest.body["bytes"], &rest.body["ended"]),
        (&json!(0), &json!(true))
    );
    assert_eq!(text(&output("offset=-4").await.body), "two\n");
    assert_eq!(output("wait_ms=60001").await.status, 422);
    let open = gantry
        .ask("get", "/api/v1/operations?state=open", None)
        .await;
    assert_eq!(open.body["operations"], json!([]));
}

/// How many of the REST requests that were answered have no duration in the metrics.
async fn without_duration(gantry: &Gantry) -> u64 {
    let request = gantry.request("get", "/metrics");
    let page = request.bearer_auth(gantry.token()).send().await;
    let page = page.expect("it answers").text().await.expect("text");
    let sum = |name: &str| {
        let of_rest = format!("{name}{{surface=\"rest\"");
        let lines = page.lines().filter(|line| line.starts_with(&of_rest));
        let counts = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        counts.sum::<u64>()
    };
    sum("gantry_requests_total") - sum("gantry_request_duration_seconds_count")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_on_purpose_is_in_no_duration_of_requests() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let operation = run(&gantry, json!({ "argv": ["cat"], "input": true })).await;
    let ask = async |method, path: &str| {
        let path = format!("{operation}/{path}");
        let answer = gantry.ask(method, &path, None).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    ask("get", "output").await;
    assert_eq!(without_duration(&gantry).await, 0);
    ask("post", "input?offset=0&end=true").await;
    assert_eq!(without_duration(&gantry).await, 1);
    ask("get", "output?wait_ms=30000").await;
    assert_eq!(without_duration(&gantry).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn input_and_its_end_reach_a_command_once_whatever_is_sent_again() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let operation = run(&gantry, json!({ "argv": ["sha256sum"], "input": true })).await;
    let input: Vec<u8> = (0..3_000_000_u32)
        .map(|number| (number / 7) as u8)
        .collect();
    let send = |offset: usize, bytes: &[u8], end: bool| {
        let path = format!("{operation}/input?offset={offset}&end={end}");
        let request = gantry.request("post", &path).bearer_auth(gantry.token());
        Answer::to(request.body(bytes.to_vec()))
    };
    let too_much = send(0, &vec![0; 1024 * 1024 + 1], false).await;
    assert_eq!(too_much.status, 413, "{too_much:?}");
    let ahead = send(10, b"x", true).await;
    assert_eq!(
        ahead.body,
        json!({ "offset": 0, "ended": false }),
        "bytes are missing"
    );
    let mut offset = 0;
    loop {
        let piece = &input[offset..input.len().min(offset + 700_000)];
        let end = offset + piece.len() == input.len();
        let taken = send(offset, piece, end).await;
        assert_eq!(taken.status, 200, "{taken:?}");
        let again = send(offset, piece, end).await;
        // Where all was read already, it has ended.
        assert!(end || again.body == taken.body, "{again:?}");
        offset =
            usize::try_from(taken.body["offset"].as_u64().expect("an offset")).expect("it fits");
        if taken.body["ended"] == true {
            break;
        }
    }
    assert_eq!(offset, input.len());
    assert_eq!(ended(&gantry, &operation).await["code"], 0);
    let output = gantry
        .ask("get", &format!("{operation}/output"), None)
        .await;
    assert_eq!(text(&output.body), format!("{}  -\n", Digest::of(&input)));
    let after = send(offset, b"more", false).await;
    assert_eq!(after.status, 409, "{after:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_are_made_listed_moved_and_removed() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let does = async |mut body: Value| {
        body["runner"] = "laptop".into();
        let body = Some(body.to_string());
        let started = gantry.ask("post", "/api/v1/operations", body).await;
        assert_eq!(started.status, 201, "{started:?}");
        let id = started.body["id"].as_str().expect("an id");
        ended(&gantry, &format!("/api/v1/operations/{id}")).await
    };
    let made = does(json!({ "make_directory": { "path": "a/b" } })).await;
    assert_eq!(made["kind"], "done", "{made}");
    let file = runner.workspace().join("a/b/file");
    std::fs::write(&file, "12345").expect("it can be written");
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&file, readable).expect("it is ours");
    let found = does(json!({ "stat": { "path": "a/b/file" } })).await;
    let entry = &found["entry"];
    assert_eq!(
        (&entry["kind"], &entry["bytes"]),
        (&json!("file"), &json!(5))
    );
    let moved = does(json!({ "move": { "from": "a/b", "to": "c" } })).await;
    assert_eq!(moved["kind"], "done", "{moved}");
    let listed = does(json!({ "list": { "path": "c" } })).await;
    let file = json!({ "name": "file", "kind": "file", "bytes": 5, "mode": 0o644 });
    assert_eq!(
        listed["listing"],
        json!({ "entries": [file], "more": false })
    );
    let refused = does(json!({ "remove": { "path": "c" } })).await;
    assert_eq!(refused["kind"], "failed", "it is not empty: {refused}");
    let removed = does(json!({ "remove": { "path": "c", "tree": true } })).await;
    assert_eq!(removed["kind"], "done", "{removed}");
    assert!(!runner.workspace().join("c").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_apply_to_an_operation_is_refused() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let operation = run(&gantry, json!({ "argv": ["sleep", "1000"] })).await;
    let post = |what: &str, body: &str| {
        let path = format!("{operation}/{what}");
        let body = Some(body.to_owned());
        let gantry = &gantry;
        async move { gantry.ask("post", &path, body).await }
    };
    let input = post("input?offset=0", "hi").await;
    assert_eq!(input.status, 422, "{input:?}");
    let resize = post("resize", r#"{"rows":24,"columns":80}"#).await;
    assert_eq!(resize.status, 422, "{resize:?}");
    let no_size = post("resize", r#"{"rows":0,"columns":80}"#).await;
    assert_eq!(no_size.status, 422, "{no_size:?}");
    assert_eq!(post("signal", r#"{"signal":"wave"}"#).await.status, 422);
    let told = post("signal", r#"{"signal":"terminate"}"#).await;
    assert_eq!(told.status, 204, "{told:?}");
    let end = ended(&gantry, &operation).await;
    assert_eq!((&end["code"], &end["signal"]), (&Value::Null, &json!(15)));
    assert_eq!(post("signal", r#"{"signal":"kill"}"#).await.status, 409);
    let cancelled = gantry
        .ask("post", &format!("{operation}/cancel"), None)
        .await;
    assert_eq!(cancelled.body["answer"], "already_exited");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_does_not_hold_sees_nothing_of_an_operation() {
    let (gantry, other) = tokio::join!(Gantry::practice(), Gantry::practice());
    let _runner = gantry.runner("laptop").await;
    let operation = run(&gantry, json!({ "argv": ["sleep", "1000"] })).await;
    let id = operation.rsplit('/').next().expect("an id");
    let document = Document::new(gantry.ask("get", "/api/v1/openapi.json", None).await.body);
    let mut tried = 0;
    for of in document.operations() {
        if !of.path.starts_with("/api/v1/operations") {
            continue;
        }
        let path = of.path.replace("{id}", id) + &of.smallest_query();
        for token in [None, Some(other.token()), Some("nonsense")] {
            let mut request = gantry.request(of.method, &path);
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }
            let request = request.header("content-type", "application/json");
            let answer = Answer::to(request.body(of.smallest_body().unwrap_or_default())).await;
            assert_eq!(answer.status, 401, "{} {path}: {answer:?}", of.method);
            tried += 1;
        }
        if of.path.contains("{id}") {
            let answer = other.ask(of.method, &path, of.smallest_body()).await;
            assert_eq!(answer.status, 404, "{} {path}: {answer:?}", of.method);
        }
    }
    assert!(tried > 15, "{tried}");
    let seen = gantry.ask("get", &operation, None).await;
    assert_eq!(
        (&seen.body["state"], &seen.body["end"]),
        (&json!("open"), &Value::Null)
    );
}
