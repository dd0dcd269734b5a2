use server_records::TrustedExtension;
use shared_types::{ExtensionId, UserId, event::HookEvent};

use super::*;
use crate::testing::START;

const SANDBOX: SandboxId = SandboxId::from_u128(7);

fn file(path: &str, text: &str) -> Instructions {
    Instructions {
        path: path.to_owned(),
        text: text.to_owned(),
        bytes: text.len() as u64,
        cut: false,
    }
}

fn registered(
    kind: ExtensionKind,
    user: Option<u128>,
    name: &str,
    text: &str,
) -> RegisteredExtension {
    RegisteredExtension {
        id: ExtensionId::from_u128(1),
        kind,
        user: user.map(UserId::from_u128),
        name: name.to_owned(),
        text: text.to_owned(),
        digest: Digest::of(text.as_bytes()),
        source: String::new(),
        packed_bytes: 0,
        secret: None,
        by: UserId::from_u128(1),
        by_name: "me".to_owned(),
        at: START,
    }
}

fn skill(description: &str) -> String {
    format!("---\nname: pdf\ndescription: {description}\n---\nGo")
}

const HOOKS: &str =
    r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "./a"}]}]}}"#;

#[test]
fn the_narrower_layer_takes_the_place_of_the_wider_one() {
    let mut standing = StandingExtensions {
        registered: vec![
            registered(ExtensionKind::Skill, None, "pdf", &skill("of the tenant")),
            registered(ExtensionKind::Skill, Some(1), "pdf", &skill("of the user")),
        ],
        trusted: Vec::new(),
    };
    let all = gathered(&standing, &[], None);
    assert_eq!(all.skills[0].description, "of the user");
    let found = [
        file("app/.claude/skills/pdf/SKILL.md", &skill("of app")),
        file(".claude/skills/pdf/SKILL.md", &skill("of the root")),
    ];
    let all = gathered(&standing, &found, Some(SANDBOX));
    assert_eq!(all.skills.len(), 1);
    assert_eq!(all.skills[0].description, "of app");
    standing.registered.clear();
    assert!(gathered(&standing, &[], None).is_none());
}

#[test]
fn hooks_of_a_file_count_once_it_is_trusted_there_with_this_text() {
    let found = [file(".claude/settings.json", HOOKS)];
    let trusted = |sandbox, text: &str| StandingExtensions {
        registered: Vec::new(),
        trusted: vec![TrustedExtension {
            sandbox,
            path: ".claude/settings.json".to_owned(),
            digest: Digest::of(text.as_bytes()),
            at: START,
        }],
    };
    let counts = |standing: &StandingExtensions| {
        let all = gathered(standing, &found, Some(SANDBOX));
        assert_eq!(all.hooks[0].on, HookEvent::PreToolUse);
        all.hooks[0].from.trusted
    };
    assert!(!counts(&StandingExtensions::default()));
    assert!(counts(&trusted(SANDBOX, HOOKS)));
    assert!(!counts(&trusted(SANDBOX, "another text")));
    assert!(!counts(&trusted(SandboxId::from_u128(8), HOOKS)));
}

#[test]
fn hooks_of_all_layers_count_and_the_wider_layers_come_first() {
    let standing = StandingExtensions {
        registered: vec![
            registered(ExtensionKind::Hooks, None, "all", HOOKS),
            registered(ExtensionKind::Hooks, Some(1), "mine", HOOKS),
        ],
        trusted: Vec::new(),
    };
    let found = [
        file(".claude/settings.local.json", HOOKS),
        file(".claude/settings.json", HOOKS),
    ];
    let all = gathered(&standing, &found, Some(SANDBOX));
    let layers: Vec<_> = all.hooks.iter().map(|hook| hook.from.layer).collect();
    assert_eq!(
        layers,
        [Layer::Tenant, Layer::User, Layer::Project, Layer::Local]
    );
}

#[test]
fn an_untrusted_file_takes_the_place_of_no_trusted_server() {
    let servers = r#"{"mcpServers": {"files": {"command": "good"}}}"#;
    let standing = StandingExtensions {
        registered: vec![registered(ExtensionKind::Mcp, Some(1), "files", servers)],
        trusted: Vec::new(),
    };
    let found = [file(
        ".mcp.json",
        r#"{"mcpServers": {"files": {"command": "evil"}}}"#,
    )];
    let all = gathered(&standing, &found, Some(SANDBOX));
    assert!(all.servers[0].from.trusted);
    assert_eq!(all.servers[0].from.layer, Layer::User);
}

#[test]
fn what_cannot_be_used_is_said_on_one_clean_line() {
    let found = [
        file(".mcp.json", "no json"),
        file(".claude/skills/\u{1b}[2J/SKILL.md", &skill("d")),
        file(".claude/agents/empty.md", ""),
    ];
    let all = gathered(&StandingExtensions::default(), &found, Some(SANDBOX));
    assert_eq!(all.unread.len(), 3);
    assert!(
        all.unread.iter().all(|why| !why.contains(['\u{1b}', '\n'])),
        "{:?}",
        all.unread
    );
}

#[test]
fn a_skill_costs_about_a_hundred_tokens_and_is_told_once() {
    let found = [file(
        ".claude/skills/pdf/SKILL.md",
        &skill(&"words ".repeat(170)),
    )];
    let all = gathered(&StandingExtensions::default(), &found, Some(SANDBOX));
    let told = note(None, &all);
    let line = told.lines().nth(1).unwrap();
    assert!(
        line.starts_with("- pdf: words words") && line.len() <= 302,
        "{line}"
    );
    assert_eq!(note(Some(&all), &all), "");
    assert_eq!(
        note(Some(&all), &Extensions::default()),
        "[there are no skills any more]\n"
    );
}
