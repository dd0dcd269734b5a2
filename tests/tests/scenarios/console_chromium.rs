//! The web console as people use it: Debian's Chromium, driven by playwright-core (npm), against the real server, real
//! runners and the scripted model. The scripts are in `console/`; `make test` installs what they need.

use std::path::{Path, PathBuf};

use tests::stage::Stage;

/// Plays a script of `console/`, with this name for the model. Gives what the script said.
async fn plays_with(model: &str, script: &str, variables: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/console");
    let variables = ["PLAYWRIGHT", "CHROMIUM", "AXE"].iter().chain(variables);
    let variables = variables.map(|name| (*name, variable(&format!("GANTRY_{name}"))));
    let variables: Vec<_> = variables.collect();
    let stage = Stage::with_model(model).await;
    stage.play(&folder.join(script), &variables).await
}

/// Plays a script of `console/`.
async fn plays(script: &str) {
    plays_with("scripted", script, &[]).await;
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the tests is theirs to read"
)]
fn variable(name: &str) -> PathBuf {
    let value = std::env::var_os(name);
    let value = value.unwrap_or_else(|| {
        panic!(
            "{name} is not set: run `make test`, which installs Chromium, playwright-core and axe-core, or leave this \
             test out with -E 'not test(/chromium::/)'"
        )
    });
    PathBuf::from(value)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_enrolled_by_the_dialog_and_its_commands_are_approved_and_stopped() {
    plays("machine.mjs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_whole_after_reloads_lost_networks_killed_servers_and_ended_sign_ins() {
    plays("whole.mjs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_of_all_roles_on_phones_by_keyboard_and_in_chinese_can_do_what_is_theirs() {
    plays("people.mjs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_markdown_output_and_names_do_nothing() {
    plays("hostile.mjs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_screen_program_in_a_terminal_is_resized_and_survives_a_reload() {
    plays("terminal.mjs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn extensions_are_trusted_once_they_were_shown_and_people_bring_their_own() {
    plays("extensions.mjs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn axe_finds_nothing_serious_on_any_page_in_both_themes() {
    plays("accessible.mjs").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it makes pictures to be looked at: make screenshots"]
async fn every_page_is_pictured_in_both_themes_and_two_widths() {
    let said = plays_with("gpt-5", "pictures.mjs", &["PICTURES", "LIGHTHOUSE"]).await;
    println!("{said}");
}
