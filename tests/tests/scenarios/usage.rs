//! What models cost, for those who ask them: a turn, a session, a day, and who sees whose.

use shared_api::{RoleName, UsageBy};
use tests::{
    gantry::Gantry,
    model_server::{ModelServer, Reply},
};

/// What the client printed; it has succeeded.
async fn printed(gantry: &Gantry, arguments: &[&str]) -> String {
    let output = gantry.cli(arguments).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let noted = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {noted}");
    text + &noted
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_a_session_and_a_day_say_what_they_cost_and_to_whom() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    model.script(vec![Reply::text("one"), Reply::text("two")]);
    let empty = printed(&gantry, &["usage"]).await;
    assert!(empty.contains("gantry chat"), "{empty}");
    let chat = printed(&gantry, &["chat", "go"]).await;
    let last = chat.lines().last().unwrap_or_default();
    assert!(
        last.contains(" tokens in") && last.contains(" · unpriced · "),
        "{chat}"
    );
    let again = printed(&gantry, &["chat", "--continue", "go"]).await;
    assert!(again.contains(last), "{again}");
    let shown = printed(&gantry, &["show", "last"]).await;
    assert_eq!(shown.matches(last).count(), 2, "one for each turn: {shown}");
    let json = printed(&gantry, &["show", "last", "--json"]).await;
    assert!(!json.contains("tokens in"), "{json}");

    let table = printed(&gantry, &["usage"]).await;
    assert!(
        table.contains("MODEL") && table.contains("unpriced"),
        "{table}"
    );
    assert!(
        !table.contains('$'),
        "an unknown price is not free: {table}"
    );
    for more in [
        ["--since", "7d"],
        ["--session", "last"],
        ["--by", "day"],
        ["--by", "person"],
    ] {
        let same = printed(&gantry, &["usage", more[0], more[1]]).await;
        assert!(same.contains(" 2 ") && same.contains("unpriced"), "{same}");
    }
    let json = printed(&gantry, &["usage", "--json"]).await;
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json["total"]["calls"], 2);
    assert_eq!(json["total"]["unpriced"], 2);
    for (since, word) in [
        ("2999-01-01", "future"),
        ("9000d", "366 days"),
        ("soon", "7d"),
    ] {
        let output = gantry.cli(&["usage", "--since", since]).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains(word),
            "{since}: {said}"
        );
    }

    let sessions = gantry.client().sessions(1).await.expect("a list");
    let (id, mut turns) = (sessions[0].id, Vec::new());
    let mut after = None;
    loop {
        let path = format!(
            "/api/v1/sessions/{id}/usage/turns?limit=1{}",
            after.unwrap_or_default()
        );
        let page = gantry.ask("get", &path, None).await.body;
        turns.push(page["turns"][0]["turn"].as_str().expect("an id").to_owned());
        let Some(next) = page["next"].as_str() else {
            break;
        };
        after = Some(format!("&after={next}"));
    }
    assert_eq!(turns.len(), 2);
    let wrong = format!("/api/v1/sessions/{id}/usage/turns?after=nonsense");
    assert_eq!(gantry.ask("get", &wrong, None).await.status, 422);
    let of_turn = format!("/api/v1/sessions/{id}/usage?turn={}", turns[0]);
    assert_eq!(
        gantry.ask("get", &of_turn, None).await.body["total"]["calls"],
        1
    );

    let bob = gantry.person("bob", RoleName::Member).await;
    let client = gantry.client_with(Some(bob.clone()));
    let own = client.usage(None, UsageBy::Person, false).await;
    assert_eq!(own.expect("it is bob's").total.calls, 0);
    assert!(client.usage(None, UsageBy::Person, true).await.is_err());
    assert_eq!(gantry.ask_as(&bob, "get", &of_turn, None).await.status, 404);
    let ann = gantry.person("ann", RoleName::Admin).await;
    let client = gantry.client_with(Some(ann));
    let all = client.usage(None, UsageBy::Person, true).await;
    let all = all.expect("an admin sees it");
    assert_eq!(all.rows[0].key.name.as_deref(), Some("owner"));
    assert_eq!(all.total.calls, 2);
}
