//! What the web console does in Chromium: how long a long chat takes to open, what streams cost, what a terminal does.

use std::{env, path::Path};

use tests::stage::Stage;

/// What the script asks for, by the name without `GANTRY_`.
const TOOLS: [&str; 2] = ["PLAYWRIGHT", "CHROMIUM"];

/// Plays the script of the figures, and prints what it tells.
pub(crate) async fn tell() {
    let tools = TOOLS.map(|name| env::var_os(format!("GANTRY_{name}")).map(|path| (name, path.into())));
    let tools: Option<Vec<_>> = tools.into_iter().collect();
    let Some(tools) = tools else {
        println!("the figures of the web console are left out: Chromium or playwright-core is missing");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/console/figures.mjs");
    let said = Stage::with_model("scripted").await.play(&script, &tools).await;
    for figure in said.lines().filter_map(|line| line.strip_prefix("figure: ")) {
        println!("{figure}");
    }
}
