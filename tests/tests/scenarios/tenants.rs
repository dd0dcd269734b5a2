//! Two tenants on one server: nothing of the one is there for the other.

use serde_json::{Value, json};
use shared_api::RoleName;
use shared_types::SessionId;
use tests::{
    gantry::{Answer, Gantry, Runner, eventually},
    openapi::Document,
    socket::Socket,
};

/// What the other tenant has: of each kind its id, and one of nothing.
struct Theirs(Vec<(&'static str, String, &'static str)>);

impl Theirs {
    /// The owner of another tenant makes one thing of each kind.
    async fn made(gantry: &Gantry, token: &str) -> (Self, Runner) {
        let owner = gantry.client_with(Some(token.to_owned()));
        let wish = shared_api::CreateJoinToken::one("their-pc");
        let join = owner.create_join_token(&wish).await.expect("a join token");
        let mut runner = Runner::enrol(gantry.url(), &join.token, "their-pc").await;
        runner.start();
        eventually("their runner is online", async || {
            let runners = owner.runners().await.expect("a list");
            runners.iter().any(|runner| runner.online).then_some(())
        })
        .await;
        let exec = json!({ "runner": "their-pc", "exec": { "argv": ["sleep", "1000"] } });
        let started = gantry.ask_as(token, "post", "/api/v1/operations", Some(exec.to_string()));
        let operation = started.await.body["id"].as_str().expect("an id").to_owned();
        tests::asked::propose(&runner.workspace(), "deny = [\"Shell(git push *)\"]");
        let session = owner.create_session("theirs").await.expect("a session").id;
        let key = owner.create_key("theirs").await.expect("a key").entry.id;
        let wish = shared_api::CreateJoinToken::one("next");
        let token = owner.create_join_token(&wish);
        let token = token.await.expect("a token").id;
        let person = owner.invite("zoe", RoleName::Member).await;
        let person = person.expect("she is invited").person.id;
        let id = owner.runners().await.expect("a list")[0].id;
        let asked = tests::asked::about(&owner, session, "touch asked").await.id;
        let rule = shared_api::AddPermissionRule {
            rule: "Shell(make *)".to_owned(),
            decision: shared_api::Decision::Deny,
            for_everyone: true,
        };
        let rule = owner.add_permission_rule(&rule).await.expect("it is set");
        let rule = rule.id.expect("it is stored");
        let trust = tests::asked::trusted(&owner, session).await.id;
        let skill = tests::asked::skill(&owner).await;
        let theirs = vec![
            (
                "sessions",
                session.to_string(),
                "ses_00000000000000000000000000",
            ),
            ("operations", operation, "op_00000000000000000000000000"),
            (
                "approvals",
                asked.to_string(),
                "apr_00000000000000000000000000",
            ),
            (
                "permissions",
                rule.to_string(),
                "rul_00000000000000000000000000",
            ),
            (
                "permissions/projects",
                trust.to_string(),
                "rul_00000000000000000000000000",
            ),
            (
                "extensions",
                skill.to_string(),
                "ext_00000000000000000000000000",
            ),
            ("keys", key.to_string(), "crd_00000000000000000000000000"),
            (
                "join-tokens",
                token.to_string(),
                "jtk_00000000000000000000000000",
            ),
            ("runners", id.to_string(), "run_00000000000000000000000000"),
            (
                "people",
                person.to_string(),
                "usr_00000000000000000000000000",
            ),
        ];
        (Self(theirs), runner)
    }

    fn id(&self, noun: &str) -> &str {
        let mut all = self.0.iter();
        let (_, id, _) = all.find(|(of, ..)| *of == noun).expect("it was made");
        id
    }
}

/// Asks about their thing and about nothing: the answers differ by no word but the id. Returns them.
async fn alike(
    gantry: &Gantry,
    theirs: &str,
    nothing: &str,
    of: [&str; 2],
    body: Option<Value>,
) -> Value {
    let [method, path] = of;
    let ask = async |id: &str| {
        let body = body
            .as_ref()
            .map(|body| body.to_string().replace("{id}", id));
        let answer = gantry.ask(method, &path.replace("{id}", id), body).await;
        let Answer { status, body, .. } = answer;
        json!({ "status": status, "body": body })
            .to_string()
            .replace(id, "{id}")
    };
    let (theirs, nothing) = (ask(theirs).await, ask(nothing).await);
    assert_eq!(theirs, nothing, "{method} {path}");
    serde_json::from_str(&theirs).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_another_tenants_answers_at_every_address_like_what_does_not_exist() {
    let gantry = Gantry::practice().await;
    let _ours = gantry.runner("laptop").await;
    let stranger = gantry.other_tenant().await;
    let (theirs, _runner) = Theirs::made(&gantry, &stranger).await;
    let document = gantry.ask("get", "/api/v1/openapi.json", None).await;
    let document = Document::new(document.body);
    let mut tried = 0;
    for operation in document.operations() {
        if !operation.path.contains("{id}") {
            continue;
        }
        let body = operation.smallest_body().filter(|body| !body.is_empty());
        let body = body.map(|body| serde_json::from_str(&body).expect("JSON"));
        let path = operation.path.to_owned() + &operation.smallest_query();
        for (_, id, nothing) in &theirs.0 {
            let of = [operation.method, &path];
            let answer = alike(&gantry, id, nothing, of, body.clone()).await;
            assert_eq!(answer["status"], 404, "{of:?}: {answer}");
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
    for path in ["/api/v1/operations/{id}/stream"] {
        let path = path.replace("{id}", theirs.id("operations"));
        assert_eq!(Socket::refused(&gantry, gantry.token(), &path).await, 404);
    }
    let kept = gantry
        .ask_as(&stranger, "get", "/api/v1/runners", None)
        .await;
    assert_eq!(
        kept.body["runners"][0]["online"], true,
        "nothing was removed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_another_tenants_is_found_under_no_name_and_in_no_list() {
    let gantry = Gantry::practice().await;
    let _ours = gantry.runner("laptop").await;
    let stranger = gantry.other_tenant().await;
    let (theirs, _runner) = Theirs::made(&gantry, &stranger).await;
    let session = gantry.client().create_session("").await;
    let session: SessionId = session.expect("a session").id;
    let runner = gantry.client().runners().await.expect("a list")[0].id;
    let named = json!({ "runner": "{id}" });
    let exec = json!({ "runner": "{id}", "exec": { "argv": ["true"] } });
    let (pin, share) = (
        format!("/api/v1/sessions/{session}/runner"),
        format!("/api/v1/runners/{runner}/share"),
    );
    for (of, body) in [
        (["put", "/api/v1/me/runner"], &named),
        (["post", "/api/v1/sessions"], &named),
        (["put", &pin], &named),
        (["post", "/api/v1/operations"], &exec),
    ] {
        for (theirs, nothing) in [
            (theirs.id("runners"), "run_00000000000000000000000000"),
            ("their-pc", "nothing"),
        ] {
            let answer = alike(&gantry, theirs, nothing, of, Some(body.clone())).await;
            assert_eq!(answer["status"], 404, "{of:?}: {answer}");
        }
    }
    for (theirs, nothing) in [
        (theirs.id("people"), "usr_00000000000000000000000000"),
        ("zoe", "max"),
    ] {
        let with = Some(json!({ "with": "{id}" }));
        let answer = alike(&gantry, theirs, nothing, ["post", &share], with).await;
        assert_eq!(answer["status"], 422, "{answer}");
        let of = ["get", "/api/v1/audit?after=0&who={id}"];
        alike(&gantry, theirs, nothing, of, None).await;
    }
    for noun in ["sessions", "operations"] {
        let of = format!("/api/v1/{noun}?prefix={}", theirs.id(noun));
        let found = gantry.ask("get", &of, None).await;
        assert_eq!(found.body[noun], json!([]), "{found:?}");
    }
    for noun in [
        "sessions",
        "operations",
        "keys",
        "runners",
        "people",
        "usage",
        "audit",
    ] {
        let listed = gantry.ask("get", &format!("/api/v1/{noun}"), None).await;
        assert_eq!(listed.status, 200);
        let listed = listed.body.to_string();
        for (_, id, _) in &theirs.0 {
            assert!(!listed.contains(id.as_str()), "{noun}: {listed}");
        }
    }
}
