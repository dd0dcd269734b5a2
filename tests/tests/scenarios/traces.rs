//! Traces: a message down to its process is one tree, whatever dies on the way, and nobody waits for a collector.

use std::sync::Arc;

use serde_json::json;
use shared_types::{
    Epoch, OperationId, SessionId, SpanId, TraceContext, TurnId, event::TurnOutcome,
};
use tests::{
    collector::{Collector, Span},
    gantry::{Answer, Gantry, Runner, Setup, Talk, eventually},
    model_server::{ModelServer, Reply, Step},
};
use tokio::{net::TcpListener, sync::Notify};

/// The span of a client of ours.
const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Its trace.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// What nobody may find in a span.
const CANARY: &str = "canary-7d41e0";

const MESSAGES: &str = "POST /api/v1/sessions/{id}/messages";

/// A server that sends its spans there, and logs for programs.
async fn traced(collector: &Collector, model: &ModelServer) -> Gantry {
    Gantry::with(Setup {
        model: Some(model.base_url()),
        settings: format!("{}[log]\nformat = \"json\"\n", collector.settings()),
        ..Setup::default()
    })
    .await
}

/// A runner that does so as well.
async fn traced_runner(collector: &Collector, gantry: &Gantry) -> Runner {
    let token = gantry.join_token("laptop").await;
    let mut runner = Runner::enrol(gantry.url(), &token, "laptop").await;
    runner.options(&["--traces", &collector.url()]);
    runner.start();
    gantry.until_online("laptop", true).await;
    runner
}

/// Sends a message as a client does that traces itself.
async fn send(gantry: &Gantry, session: SessionId, text: &str) -> TurnId {
    let path = format!("/api/v1/sessions/{session}/messages");
    let request = gantry.request("post", &path).bearer_auth(gantry.token());
    let request = request.header("traceparent", CALLER);
    let answer = Answer::to(request.json(&json!({ "text": text }))).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let turn = answer.body["turn"].as_str().expect("an id");
    turn.parse().expect("an id")
}

fn attribute<'a>(span: &'a Span, key: &str) -> &'a str {
    span.attributes.get(key).map_or("", String::as_str)
}

fn is_within(child: &Span, parent: &Span) {
    assert_eq!(child.parent, parent.id, "{child:?} is part of {parent:?}");
    assert!(parent.times[0] <= parent.times[1], "{parent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_one_trace_down_to_its_process_across_the_death_of_the_server() {
    let (collector, model) = (Collector::start().await, ModelServer::start().await);
    let mut gantry = traced(&collector, &model).await;
    let runner = traced_runner(&collector, &gantry).await;
    let command = format!(
        "echo {CANARY}; echo \"at $TRACEPARENT\"; while [ ! -e go-on ]; do sleep 0.02; done; exit 3"
    );
    model.script(vec![
        Reply::call("Shell", json!({ "command": command })),
        Reply::text(CANARY),
    ]);
    let mut talk = gantry.talk().await;
    let turn = send(&gantry, talk.session(), CANARY).await;
    talk.until_output("at ").await;
    // What waits to be sent dies with a server.
    let request = collector.span(TRACE, MESSAGES).await;
    let first = collector.span(TRACE, "chat scripted").await;
    gantry.kill_server().await;
    gantry.start_server().await;
    gantry.until_online("laptop", true).await;
    std::fs::write(runner.workspace().join("go-on"), "").expect("it can be written");
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);

    let of_turn = collector.span(TRACE, "invoke_agent gantry").await;
    let tool = collector.span(TRACE, "execute_tool shell").await;
    let operation = collector.span(TRACE, "operation exec").await;
    let run = collector.span(TRACE, "run exec").await;
    let process = collector.span(TRACE, "process").await;
    assert!(CALLER.contains(&request.parent), "{request:?}");
    is_within(&of_turn, &request);
    is_within(&first, &of_turn);
    is_within(&tool, &of_turn);
    is_within(&operation, &tool);
    is_within(&run, &operation);
    is_within(&process, &run);
    let services = [&tool, &operation, &run, &process].map(|span| span.service.as_str());
    let [server, on_runner] = ["gantry-server", "gantry-runner"];
    assert_eq!(services, [server, server, on_runner, on_runner]);
    let spans = collector.spans();
    let of_trace: Vec<_> = spans.iter().filter(|span| span.trace == TRACE).collect();
    let chats = of_trace.iter().filter(|span| span.name == "chat scripted");
    assert_eq!(chats.count(), 2, "{}", collector.tree(TRACE));
    assert_eq!(of_trace.len(), 8, "{}", collector.tree(TRACE));

    // What they say, and what they do not.
    assert_eq!(attribute(&first, "gen_ai.operation.name"), "chat");
    assert_eq!(attribute(&first, "gen_ai.request.model"), "scripted");
    assert_ne!(attribute(&first, "gen_ai.usage.output_tokens"), "");
    assert_eq!(attribute(&of_turn, "gantry.turn.id"), turn.to_string());
    assert_eq!(attribute(&of_turn, "gantry.turn.claims"), "2");
    let id = told.operations()[0].to_string();
    assert_eq!(attribute(&operation, "gantry.operation.id"), id);
    assert_eq!(attribute(&process, "process.exit.code"), "3");
    let all = format!("{spans:?}");
    assert!(!all.contains(CANARY), "{all}");

    // The process was told where it stands, and so was the model.
    let (_, text) = told.calls()[0];
    let place = format!("at 00-{TRACE}-{}-01", process.id);
    assert!(text.contains(&place), "{text}");
    let asked = format!("00-{TRACE}-{}-01", first.id);
    assert_eq!(model.traceparents()[0].as_deref(), Some(asked.as_str()));
    let (trace, of_turn) = (format!("\"trace.id\":\"{TRACE}\""), turn.to_string());
    let told = |words: &str, about: &str| {
        let log = gantry.log();
        let mut lines = log.lines().filter(|line| line.contains(words));
        lines.any(|line| line.contains(&trace) && line.contains(about))
    };
    eventually("the log tells both in the trace", || async {
        (told("operation ended", &id) && told("turn ended", &of_turn)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_asked_again_after_a_death_is_linked_to_the_time_before() {
    let (collector, model) = (Collector::start().await, ModelServer::start().await);
    let mut gantry = traced(&collector, &model).await;
    let hold = Arc::new(Notify::new());
    model.script(vec![
        Reply::Raw(vec![Step::Hold(hold)]),
        Reply::text("at last"),
    ]);
    let mut talk = gantry.talk().await;
    let turn = send(&gantry, talk.session(), "go").await;
    model.wait_for_requests(1).await;
    gantry.kill_server().await;
    gantry.start_server().await;
    talk.ended(turn).await;
    let chat = collector.span(TRACE, "chat scripted").await;
    let of = |epoch| SpanId::of_model_call(turn, 1, Epoch(epoch), 1).to_string();
    assert_eq!((&chat.id, &chat.links), (&of(2), &vec![of(1)]));
    let asked = model.traceparents();
    let spans = asked.iter().flatten().map(|text| {
        let context: TraceContext = text.parse().expect("a traceparent");
        context.span.to_string()
    });
    assert_eq!(spans.collect::<Vec<_>>(), [of(1), of(2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_a_caller_is_in_the_callers_trace_across_the_death_of_the_runner() {
    let (collector, model) = (Collector::start().await, ModelServer::start().await);
    let gantry = traced(&collector, &model).await;
    let mut runner = traced_runner(&collector, &gantry).await;
    let command = "touch began; until test -e go; do sleep 0.02; done";
    let body = json!({ "runner": "laptop", "exec": { "script": command } });
    let request = gantry.request("post", "/api/v1/operations");
    let request = request
        .bearer_auth(gantry.token())
        .header("traceparent", CALLER);
    let started = Answer::to(request.json(&body)).await;
    assert_eq!(started.status, 201, "{started:?}");
    let id = started.body["id"].as_str().expect("an id");
    let id: OperationId = id.parse().expect("an id");
    eventually("it runs", || async { runner.file("began") }).await;
    runner.kill().await;
    runner.start();
    gantry.until_online("laptop", true).await;
    std::fs::write(runner.workspace().join("go"), "").expect("it can be written");
    let request = collector.span(TRACE, "POST /api/v1/operations").await;
    let operation = collector.span(TRACE, "operation exec").await;
    let run = collector.span(TRACE, "run exec").await;
    let process = collector.span(TRACE, "process").await;
    assert_eq!(operation.id, SpanId::of_operation(id).to_string());
    is_within(&operation, &request);
    is_within(&run, &operation);
    is_within(&process, &run);
    assert_eq!(attribute(&process, "process.exit.code"), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_that_its_caller_does_not_collect_is_passed_on_and_not_collected() {
    let (collector, model) = (Collector::start().await, ModelServer::start().await);
    let gantry = traced(&collector, &model).await;
    let _runner = traced_runner(&collector, &gantry).await;
    model.script(vec![
        Reply::call("Shell", json!({ "command": "echo \"at $TRACEPARENT\"" })),
        Reply::text("done"),
    ]);
    let mut talk = gantry.talk().await;
    let path = format!("/api/v1/sessions/{}/messages", talk.session());
    let request = gantry.request("post", &path).bearer_auth(gantry.token());
    let unsampled = CALLER.replace("-01", "-00");
    let request = request.header("traceparent", &unsampled);
    let sent = Answer::to(request.json(&json!({ "text": "go" }))).await;
    let turn: TurnId = sent.body["turn"]
        .as_str()
        .expect("an id")
        .parse()
        .expect("an id");
    let told = talk.ended(turn).await;
    let (_, text) = told.calls()[0];
    assert!(text.contains(&format!("at 00-{TRACE}-")), "{text}");
    assert!(text.contains("-00"), "{text}");
    // A request that is refused for its credential is not collected at all.
    let request = gantry.request("get", "/api/v1/sessions");
    let request = request.bearer_auth("wrong").header("traceparent", CALLER);
    assert_eq!(Answer::to(request).await.status, 401);
    // A trace that comes later has arrived, and this one has not.
    model.script(vec![Reply::text("hello")]);
    let turn = send_sampled(&mut talk).await;
    let arrived = || async {
        let of_turn = SpanId::of_turn(turn).to_string();
        let spans = collector.spans();
        spans.iter().any(|span| span.id == of_turn).then_some(())
    };
    eventually("the later trace arrives", arrived).await;
    assert_eq!(collector.tree(TRACE), "");
}

/// Sends a message that begins a trace of its own.
async fn send_sampled(talk: &mut Talk) -> TurnId {
    let turn = talk.send("hello").await;
    talk.ended(turn).await;
    turn
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_never_answers_loses_spans_and_nothing_else() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = silent.local_addr().expect("it is bound");
    let gantry = Gantry::with(Setup {
        settings: format!("[traces]\nendpoint = \"http://{address}\"\n"),
        ..Setup::default()
    })
    .await;
    let _runner = gantry.runner("laptop").await;
    let told = gantry.talk().await.say("run echo one").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let dropped = || async {
        let page = gantry
            .request("get", "/metrics")
            .bearer_auth(gantry.token());
        let page = page.send().await.ok()?.text().await.ok()?;
        let series = "gantry_trace_spans_dropped_total{reason=\"not_taken\"}";
        let line = page.lines().find(|line| line.starts_with(series))?;
        (!line.ends_with(" 0")).then_some(())
    };
    eventually("spans are dropped, and counted", dropped).await;
    assert!(
        gantry
            .log()
            .contains("spans are dropped until the collector takes them")
    );
    // And nothing waits for it meanwhile.
    gantry.talk().await.say("run echo two").await;
}

/// Variables by which the libraries of OpenTelemetry would lose spans, send them elsewhere or add the canary to them.
const OF_LIBRARIES: [&str; 19] = [
    "OTEL_SDK_DISABLED=true",
    "OTEL_TRACES_EXPORTER=none",
    "OTEL_TRACES_SAMPLER=always_off",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=0",
    "OTEL_SPAN_LINK_COUNT_LIMIT=0",
    "OTEL_BSP_MAX_QUEUE_SIZE=1",
    "OTEL_BSP_SCHEDULE_DELAY=3600000",
    "OTEL_SERVICE_NAME=canary-7d41e0",
    "OTEL_RESOURCE_ATTRIBUTES=service.name=canary-7d41e0,canary-7d41e0=yes",
    "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:1",
    "OTEL_EXPORTER_OTLP_HEADERS=canary-7d41e0=yes",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS=canary-7d41e0=yes",
    "OTEL_EXPORTER_OTLP_TIMEOUT=0",
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=0",
    "OTEL_EXPORTER_OTLP_COMPRESSION=gzip",
    "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf",
    "OTEL_EXPORTER_OTLP_INSECURE=false",
];

#[tokio::test(flavor = "multi_thread")]
async fn variables_of_the_libraries_change_nothing() {
    let collector = Collector::start().await;
    let pair = |variable: &str| {
        let (name, value) = variable.split_once('=').expect("a variable");
        (name.to_owned(), value.to_owned())
    };
    let gantry = Gantry::with(Setup {
        // What is logged says nothing about what is traced.
        settings: format!("{}[log]\nfilter = \"off\"\n", collector.settings()),
        variables: OF_LIBRARIES.map(pair).to_vec(),
        ..Setup::default()
    })
    .await;
    let token = gantry.join_token("laptop").await;
    let mut runner = Runner::enrol(gantry.url(), &token, "laptop").await;
    runner.launch_by(&[&["env"], &OF_LIBRARIES[..]].concat());
    runner.options(&["--traces", &collector.url()]);
    runner.start();
    gantry.until_online("laptop", true).await;
    let talk = gantry.talk().await;
    let session = talk.session();
    send(&gantry, session, "run echo one").await;

    let request = collector.span(TRACE, MESSAGES).await;
    let process = collector.span(TRACE, "process").await;
    assert_eq!(attribute(&request, "http.response.status_code"), "202");
    assert_eq!(attribute(&process, "process.exit.code"), "0");
    let services = [&request, &process].map(|span| span.service.as_str());
    assert_eq!(services, ["gantry-server", "gantry-runner"]);
    let spans = format!("{:?}", collector.spans());
    assert!(!spans.contains(CANARY), "{spans}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_grpc_is_named_by_its_service_and_method_and_a_caller_makes_up_no_name() {
    let (collector, model) = (Collector::start().await, ModelServer::start().await);
    let gantry = traced(&collector, &model).await;
    let _runner = traced_runner(&collector, &gantry).await;
    let service = "gantry.runner.v1.Enrolment";
    let made_up = format!("/{service}/{CANARY}");
    let request = gantry.request("post", &made_up);
    let request = request.header("content-type", "application/grpc");
    request.send().await.expect("an answer");
    for (name, method) in [
        (format!("{service}/Enrol"), "Enrol"),
        (format!("{service}/_OTHER"), "_OTHER"),
        ("gantry.runner.v1.RunnerLink/Link".to_owned(), "Link"),
    ] {
        let span = eventually("the call's span arrives", || async {
            let spans = collector.spans();
            spans.into_iter().find(|span| span.name == name)
        })
        .await;
        assert_eq!(attribute(&span, "rpc.system"), "grpc", "{span:?}");
        assert_eq!(attribute(&span, "rpc.method"), method, "{span:?}");
    }
    let spans = format!("{:?}", collector.spans());
    assert!(
        !spans.contains("{*rest}") && !spans.contains(CANARY),
        "{spans}"
    );
}
