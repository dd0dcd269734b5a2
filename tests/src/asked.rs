//! A question of an agent to its person, made by a real turn.

use std::path::Path;

use shared_api::{
    Approval, ChangeSettings, ExtensionKind, LayerName, NewValues, PutExtension, SettingName,
    TrustedFile,
};
use shared_client::Client;
use shared_types::{ExtensionId, SessionId};

use crate::gantry::eventually;

/// From now on the person's agents work in this mode.
pub async fn mode(client: &Client, mode: &str) {
    let mut values = NewValues::default();
    values.set(SettingName::Mode, Some(mode.to_owned()));
    let change = ChangeSettings {
        layer: LayerName::User,
        session: None,
        values,
        generation: None,
    };
    let changed = client.change_settings(&change).await;
    changed.expect("everybody may set a mode");
}

/// The question about a command that the practice model is told to run in this session.
pub async fn about(client: &Client, session: SessionId, command: &str) -> Approval {
    mode(client, "ask").await;
    let text = format!("run {command}");
    let sent = client.send(session, &text, &client.new_client_id()).await;
    sent.expect("the message is accepted");
    eventually("the person is asked", async || {
        let open = client.approvals(false, 10).await.expect("a list");
        open.into_iter().find(|one| one.session == session)
    })
    .await
}

/// The trust in the file with a project's rules that the last turn of this session found.
pub async fn trusted(client: &Client, session: SessionId) -> TrustedFile {
    let proposed = client.proposed_rules(session).await;
    let digest = proposed.expect("it found a file").digest;
    let trusted = client.trust_project(session, digest).await;
    trusted.expect("it is trusted")
}

/// Registers a skill of the caller's; returns its id.
pub async fn skill(client: &Client) -> ExtensionId {
    let new = PutExtension {
        kind: ExtensionKind::Skill,
        name: "pdf".to_owned(),
        text: "---\nname: pdf\ndescription: Fill PDF forms.\n---\nUse a tool.".to_owned(),
        packed: None,
        source: String::new(),
        for_everyone: false,
        replaces: None,
    };
    client
        .put_extension(&new)
        .await
        .expect("it is registered")
        .id
}

/// Writes rules into the file of the project in this folder.
pub fn propose(folder: &Path, rules: &str) {
    let file = folder.join(".gantry/permissions.toml");
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("it is made");
    std::fs::write(file, rules).expect("it is written");
}
