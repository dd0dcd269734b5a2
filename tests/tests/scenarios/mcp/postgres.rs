//! Two servers on one database that answer one another: `/mcp` keeps nothing of a client, so each answers for what the other began.

use serde_json::json;
use tests::{
    gantry::{Gantry, Setup},
    postgres::Postgres,
};

use super::{
    client::{McpClient, text},
    task_in, until,
};

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_began_at_one_server_it_reads_stops_and_cancels_at_the_other() {
    let postgres = Postgres::start();
    let one = Gantry::with(Setup {
        database: Some(postgres.database()),
        settings: "[peers]\nlisten = \"127.0.0.1:0\"\n".to_owned(),
        ..Setup::default()
    })
    .await;
    let runner = one.runner("laptop").await;
    let other = one.another().await;
    let here = McpClient::begun(&one, one.token()).await;
    let there = here.by_way_of(&other);

    let go = runner.workspace().join("go");
    let command = "echo first; while [ ! -e go ]; do sleep 0.05; done; echo last";
    let begin = json!({ "command": command, "background": true });
    let (said, failed) = here.call("exec", begin).await;
    assert!(!failed, "{said}");
    std::fs::write(go, "").expect("it is written");
    let (ended, failed) = there
        .call("read_task", json!({ "id": task_in(&said) }))
        .await;
    assert!(!failed && ended.contains("first\nlast"), "{ended}");
    assert!(ended.contains("[exit code 0"), "{ended}");

    let endless = json!({ "command": "sleep 1000", "background": true });
    let (said, _) = here.call("exec", endless).await;
    let task = json!({ "id": task_in(&said) });
    let (stopped, failed) = there.call("stop_task", task.clone()).await;
    assert!(!failed, "{stopped}");
    let (ended, failed) = here.call("read_task", task).await;
    assert!(failed && ended.contains("stopped on request"), "{ended}");

    let marker = format!("MCP_MARK=two-{}", runner.pid());
    let command = json!({ "command": format!("{marker} sleep 1000") });
    let call = here.begin("exec", command).await;
    until(&marker, true).await;
    there.cancel(&call).await;
    let said = text(&call.answer().await);
    assert!(said.contains("stopped on request"), "{said}");
}
