//! Records the commit and the build date of a program.
//!
//! `GANTRY_COMMIT` and `GANTRY_COMMIT_DATE` count where they are set, as `deploy/dist` and the
//! images set them. Otherwise a release build asks git. A development build does not, because cargo
//! would rebuild it after every commit.

use std::{env, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=GANTRY_COMMIT");
    println!("cargo::rerun-if-env-changed=GANTRY_COMMIT_DATE");
    let package = variable("CARGO_PKG_VERSION").unwrap_or_default();
    let of = match (variable("GANTRY_COMMIT"), variable("PROFILE").as_deref()) {
        (Some(commit), _) => {
            let date = variable("GANTRY_COMMIT_DATE");
            format!(
                "{commit} {}",
                date.as_deref().unwrap_or("of an unknown date")
            )
        }
        (None, Some("release")) => of_git().unwrap_or("unknown commit".to_owned()),
        (None, _) => "development build".to_owned(),
    };
    println!("cargo::rustc-env=GANTRY_VERSION={package} ({of})");
}

/// The commit that is checked out, and its day.
fn of_git() -> Option<String> {
    for moves in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--path-format=absolute", "--git-path", moves])?;
        println!("cargo::rerun-if-changed={path}");
    }
    git(&["log", "-1", "--format=%h %cs", "--abbrev=12"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let said = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    let text = text.trim();
    (said.status.success() && !text.is_empty()).then(|| text.to_owned())
}

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells build scripts everything this way"
)]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
