//! Names the folder of the web console's built files to the macro that embeds them, and has a release compiled again
//! when those files change.

use std::{env, fs, path::Path};

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let console = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../console");
    // In its plain form: the macro compares paths with it, and `dist` may come into being after this build.
    let dist = console.canonicalize()?.join("dist");
    // A development build reads the folder at run time. A missing folder counts as changed at each build.
    if variable("PROFILE") == "release" {
        println!("cargo::rerun-if-changed={}", dist.display());
    }
    let embedded = format!(
        "/// The built files of the web console.\n\
         #[derive(rust_embed::Embed)]\n\
         #[folder = {dist:?}]\n\
         #[allow_missing = true]\n\
         pub(super) struct Dist;\n"
    );
    fs::write(Path::new(&variable("OUT_DIR")).join("dist.rs"), embedded)
}

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells build scripts everything this way"
)]
fn variable(name: &str) -> String {
    env::var(name).expect("cargo sets it")
}
