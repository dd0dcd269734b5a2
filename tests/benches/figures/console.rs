//! What the web console does in Chromium: how long a long chat takes to open, what streams cost, what a terminal does.

use std::path::{Path, PathBuf};

use tests::stage::Stage;

/// What the script asks for, by the name without `GANTRY_`.
const TOOLS: [&str; 2] = ["PLAYWRIGHT", "CHROMIUM"];

/// Plays the script of the figures, and prints what it tells.
pub(crate) async fn tell() {
    let tools = TOOLS.map(|name| variable(name).map(|path| (name, path)));
    let tools: Option<Vec<_>> = tools.into_iter().collect();
    let Some(tools) = tools else {
        println!("web console: left out, because Chromium or playwright-core is missing");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/console/figures.mjs");
    let stage = Stage::with_model("scripted").await;
    let said = stage.play(&script, &tools).await;
    let figures = said
        .lines()
        .filter_map(|line| line.strip_prefix("figure: "));
    figures.for_each(|figure| println!("web console: {figure}"));
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the bench is its own to read"
)]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(format!("GANTRY_{name}")).map(PathBuf::from)
}
