//! Images: brought with a message, or read on a runner; seen by a model that sees, and told in words to one that does not.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use shared_api::{AddModelAccount, RoleName};
use tests::{
    gantry::{Gantry, Setup},
    model_server::{ModelServer, Reply},
};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nthe pixels";

/// What a model that does not see is told.
const UNSEEN: &str = "this model does not read images";

/// A server with a model that sees, `claude-t`, and one that does not, `deepseek-t`.
async fn gantry() -> (Gantry, ModelServer, ModelServer) {
    let gantry = Gantry::with(Setup {
        settings: "[model]\nprivate_addresses = true\n".to_owned(),
        ..Setup::default()
    })
    .await;
    let (seeing, blind) = (ModelServer::start().await, ModelServer::start().await);
    for (provider, model, server) in [
        ("anthropic", "claude-t", &seeing),
        ("deepseek", "deepseek-t", &blind),
    ] {
        server.script(vec![Reply::call("ping", "{}")]);
        let base_url = match provider {
            "anthropic" => server.root_url().to_owned(),
            _ => server.base_url(),
        };
        let account = AddModelAccount {
            provider: provider.to_owned(),
            name: None,
            format: None,
            base_url: Some(base_url),
            models: vec![model.to_owned()],
            key: Some("sk-test".to_owned()),
            of_tenant: false,
        };
        let added = gantry.client().add_model_account(&account).await;
        added.expect("its model answers");
    }
    (gantry, seeing, blind)
}

fn last_request(server: &ModelServer) -> String {
    let asked = server.asked();
    asked.last().expect("it was asked").body.to_string()
}

async fn said(gantry: &Gantry, words: &[&str]) -> String {
    let output = gantry.cli(words).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {text}");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_of_a_message_is_seen_by_one_model_and_told_to_another() {
    let (gantry, seeing, blind) = gantry().await;
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (folder.path().join("one.png"), folder.path().join("two.png"));
    std::fs::write(&one, PNG).expect("a file");
    std::fs::write(&two, [PNG, b"more"].concat()).expect("a file");
    let (one, two) = (one.to_str().expect("text"), two.to_str().expect("text"));

    seeing.script(vec![Reply::text("a cat")]);
    let message = format!("compare with @{two} and @gone.png");
    let shown = said(
        &gantry,
        &["chat", "--model", "claude-t", "--image", one, &message],
    )
    .await;
    assert!(shown.contains("a cat"), "{shown}");
    assert!(shown.contains("gone.png is not on this machine"), "{shown}");
    let sent = last_request(&seeing);
    for bytes in [PNG, &[PNG, b"more"].concat()] {
        assert!(sent.contains(&STANDARD.encode(bytes)), "{sent}");
    }

    blind.script(vec![Reply::text("I cannot see it")]);
    said(
        &gantry,
        &["chat", "-c", "--model", "deepseek-t", "and now?"],
    )
    .await;
    let sent = last_request(&blind);
    assert!(
        sent.contains(UNSEEN) && !sent.contains(&STANDARD.encode(PNG)),
        "{sent}"
    );

    std::fs::write(two, "text").expect("a file");
    let sessions = async || gantry.client().sessions(10).await.expect("a list").len();
    let before = sessions().await;
    let refused = gantry.cli(&["chat", "--image", two, "what is it?"]).await;
    assert_eq!(sessions().await, before, "none began");
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        why.contains("no image of PNG") && !refused.status.success(),
        "{why}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_is_read_on_a_runner_is_seen_and_stays_with_the_session() {
    let (gantry, seeing, blind) = gantry().await;
    let laptop = gantry.runner("laptop").await;
    std::fs::write(laptop.workspace().join("shot.png"), PNG).expect("a file");
    let whole = vec![0; 6 * 1024 * 1024];
    std::fs::write(laptop.workspace().join("large.png"), whole).expect("a file");
    let read = |path: &str| Reply::call("Read", serde_json::json!({ "path": path }).to_string());

    seeing.script(vec![read("shot.png"), Reply::text("a cat")]);
    let shown = said(
        &gantry,
        &["chat", "--model", "claude-t", "look at shot.png"],
    )
    .await;
    assert!(shown.contains("image/png, 18 bytes"), "{shown}");
    assert!(last_request(&seeing).contains(&STANDARD.encode(PNG)));

    blind.script(vec![
        read("shot.png"),
        read("large.png"),
        Reply::text("I cannot"),
    ]);
    said(
        &gantry,
        &["chat", "-c", "--model", "deepseek-t", "look again"],
    )
    .await;
    let sent = last_request(&blind);
    assert!(
        sent.contains(UNSEEN) && !sent.contains(&STANDARD.encode(PNG)),
        "{sent}"
    );
    assert!(
        sent.contains("at most 5242880 can be handled at once"),
        "{sent}"
    );

    let client = gantry.client();
    let session = client.sessions(1).await.expect("a list").remove(0).id;
    let path = format!(
        "/api/v1/sessions/{session}/images/{}",
        shared_types::Digest::of(PNG)
    );
    let got = gantry
        .request("get", &path)
        .bearer_auth(gantry.token())
        .send()
        .await;
    let got = got.expect("an answer");
    assert_eq!(got.headers()["content-type"], "image/png");
    assert_eq!(got.bytes().await.expect("a body"), PNG);
    let bob = gantry.person("bob", RoleName::Member).await;
    assert_eq!(gantry.ask_as(&bob, "get", &path, None).await.status, 404);
    client.delete_session(session).await.expect("it is deleted");
    assert_eq!(gantry.ask("get", &path, None).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_where_a_vendor_refuses_its_image() {
    let (gantry, seeing, _blind) = gantry().await;
    let client = gantry.client();
    let session = client
        .begin_session(&Default::default())
        .await
        .expect("a session")
        .id;
    let added = client
        .add_image(session, PNG.to_vec())
        .await
        .expect("it is kept");
    let refusal = || Reply::refusal(400, "Could not process image");
    seeing.script(vec![
        refusal(),
        Reply::text("I do not see it"),
        refusal(),
        Reply::text("I go on"),
    ]);
    let sent = client
        .send_with_images(session, "look", &[added.digest], "c1")
        .await;
    sent.expect("it is accepted");
    let id = session.to_string();
    let shown = said(&gantry, &["chat", "--session", &id, "and now?"]).await;
    assert!(shown.contains("I go on"), "{shown}");
    let sent = last_request(&seeing);
    assert!(sent.contains("an image: image/png, 18 bytes"), "{sent}");
    assert!(!sent.contains(&STANDARD.encode(PNG)), "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_names_only_images_that_its_session_has() {
    let (gantry, seeing, _blind) = gantry().await;
    let client = gantry.client();
    let mine = client
        .begin_session(&Default::default())
        .await
        .expect("a session")
        .id;
    let other = client
        .begin_session(&Default::default())
        .await
        .expect("a session")
        .id;
    let added = client
        .add_image(other, PNG.to_vec())
        .await
        .expect("it is kept");
    assert_eq!((added.media_type.as_str(), added.bytes), ("image/png", 18));
    let sent = client
        .send_with_images(mine, "look", &[added.digest], "c1")
        .await;
    let words = sent.expect_err("it is another session's").to_string();
    assert!(words.contains("does not have an image"), "{words}");
    let junk = client.add_image(mine, b"<svg/>".to_vec()).await;
    assert!(
        junk.expect_err("it is none")
            .to_string()
            .contains("PNG, JPEG, GIF or WebP")
    );
    let large = client.add_image(mine, vec![0; 6 * 1024 * 1024]).await;
    assert!(
        large
            .expect_err("it is too large")
            .to_string()
            .contains("at most 5242880")
    );
    assert_eq!(seeing.asked().len(), 1, "no turn began");
}
