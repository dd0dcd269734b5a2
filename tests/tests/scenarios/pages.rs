//! Lists, page by page: every list of the API is read in the same way.

use serde_json::{Value, json};
use shared_api::RoleName;
use tests::{
    asked,
    gantry::{Gantry, Runner, eventually},
    openapi::Document,
};

use super::api::SANDBOXES;

/// Some of everything that is listed; returns a session with a log and tasks, and a service account.
async fn filled(gantry: &Gantry) -> (String, String, Runner) {
    let runner = gantry.runner("laptop").await;
    let client = gantry.client();
    let account = client.add_service_account("deploy", RoleName::Member);
    let account = account.await.expect("there is room").id.to_string();
    for name in ["ann", "bob"] {
        let join = gantry.join_token(name).await;
        Runner::enrol(gantry.url(), &join, name).await;
        let session = client.create_session(name).await.expect("a session");
        asked::about(&client, session.id, "touch asked").await;
        client.create_key(name).await.expect("a key");
        gantry.join_token(&format!("{name}-next")).await;
        let keys = format!("/api/v1/service-accounts/{account}/keys");
        let key = json!({ "name": name }).to_string();
        assert_eq!(gantry.ask("post", &keys, Some(key)).await.status, 201);
        let invited = client.invite(name, RoleName::Member).await;
        invited.expect("there is room");
        let exec = json!({ "runner": "laptop", "exec": { "argv": ["true"] } });
        let started = gantry.ask("post", "/api/v1/operations", Some(exec.to_string()));
        assert_eq!(started.await.status, 201);
    }
    eventually("nothing runs that would change a list", async || {
        let open = client.operations(false, 10).await.expect("a list");
        open.is_empty().then_some(())
    })
    .await;
    asked::mode(&client, "full").await;
    let mut talk = gantry.talk().await;
    for _ in 0..2 {
        talk.say("run in the background: sleep 1000").await;
    }
    (talk.session().to_string(), account, runner)
}

/// The one list in an answer.
fn items(body: &Value) -> &Vec<Value> {
    let fields = body.as_object().expect("an object").values();
    let mut lists = fields.filter_map(Value::as_array);
    let list = lists.next().expect("a list");
    assert!(lists.next().is_none(), "there is one list: {body}");
    list
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_of_every_list_together_are_the_list_and_a_wrong_cursor_is_refused() {
    let gantry = Gantry::practice().await;
    let (session, account, _runner) = filled(&gantry).await;
    let (client, id) = (gantry.client(), session.parse().expect("an id"));
    let link = client
        .share_session(id, None)
        .await
        .expect("a link")
        .path
        .replace("/shared/", "");
    let document = gantry.ask("get", "/api/v1/openapi.json", None).await;
    let document = Document::new(document.body);
    let (mut lists, mut cursors) = (Vec::new(), Vec::new());
    for operation in document.operations() {
        // Sandboxes need an engine (`docker`), and the cost of turns a model that is paid for (`usage`).
        let elsewhere = [SANDBOXES, "/api/v1/sessions/{id}/usage/turns"];
        let is_list = operation.parameters("query").contains(&"after");
        if !is_list || elsewhere.contains(&operation.path) {
            continue;
        }
        let id = match operation.path.contains("/service-accounts/") {
            true => &account,
            false => &session,
        };
        let path = operation.path.replace("{id}", id).replace("{link}", &link);
        let ask = async |query: &str| gantry.ask("get", &format!("{path}?{query}"), None).await;
        // The audit log begins with the newest entries where no cursor is given.
        let begin = if path.ends_with("/audit") {
            "&after=0"
        } else {
            ""
        };
        let whole = ask(&format!("limit=500{begin}")).await;
        assert_eq!(whole.body["next"], Value::Null, "{path}: {whole:?}");
        let whole = items(&whole.body);
        assert!(whole.len() > 1, "{path}: {whole:?}");
        let (mut paged, mut query) = (Vec::new(), format!("limit=1{begin}"));
        loop {
            let page = ask(&query).await;
            assert_eq!(items(&page.body).len(), 1, "{path}: {page:?}");
            paged.extend(items(&page.body).clone());
            let Some(next) = page.body["next"].as_str() else {
                break;
            };
            query = format!("limit=1&after={next}");
            if !path.ends_with("/audit") && !path.ends_with("/events") {
                cursors.push((path.clone(), next.to_owned()));
            }
        }
        assert_eq!(&paged, whole, "{path}");
        lists.push(path);
    }
    assert_eq!(lists.len(), 12, "{lists:?}");
    for path in &lists {
        let others = cursors.iter().filter(|(of, _)| of != path);
        let others = others.map(|(_, cursor)| cursor.as_str());
        for wrong in others.chain(["nonsense", "-1", "", "WyJzZXNzaW9ucyIsMV0"]) {
            let refused = gantry
                .ask("get", &format!("{path}?after={wrong}"), None)
                .await;
            assert_eq!(refused.status, 422, "{path} {wrong}: {refused:?}");
            assert_eq!(refused.body["code"], "invalid");
        }
    }
    let printed = gantry
        .cli(&["sessions", "--json", "--limit", "10000"])
        .await;
    let printed = String::from_utf8(printed.stdout).expect("text");
    assert_eq!(printed.lines().count(), 3, "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_narrows_the_lists_of_sessions_and_of_people() {
    let gantry = Gantry::practice().await;
    let client = gantry.client();
    for title in ["Mend the pump", "paint the door"] {
        client.create_session(title).await.expect("a session");
    }
    let invited = client.invite("pumpkin", RoleName::Member).await;
    invited.expect("there is room");
    let lines = async |list: &str, search: &str| {
        let printed = gantry.cli(&[list, "list", "--search", search]).await;
        let told = String::from_utf8(printed.stderr).expect("text");
        let found = String::from_utf8(printed.stdout).expect("text");
        (
            found.lines().skip(1).map(str::to_owned).collect::<Vec<_>>(),
            told,
        )
    };
    for list in ["sessions", "people"] {
        let (found, told) = lines(list, "PUMP").await;
        assert_eq!(found.len(), 1, "{found:?} {told}");
        assert!(found[0].contains("pump"), "{found:?}");
    }
    let (found, told) = lines("sessions", "%").await;
    assert_eq!(found.len(), 0, "{found:?}");
    assert!(told.contains("no session has that in its title"), "{told}");
    let (found, told) = lines("people", "_").await;
    assert_eq!(found.len(), 0, "{found:?}");
    assert!(told.contains("nobody has that in their name"), "{told}");
    let long = "a".repeat(257);
    for query in ["search=a&prefix=ses_", &format!("search={long}")] {
        let path = format!("/api/v1/sessions?{query}");
        let refused = gantry.ask("get", &path, None);
        assert_eq!(refused.await.status, 422, "{query}");
    }
}
