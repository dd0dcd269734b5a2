//! Links one program, and no other of its package, without anything of its host. A part of build
//! scripts.
//!
//! `-C target-feature=+crt-static` does it for whole builds only, and the server needs its host's
//! libraries. So the linker gets the order to make a static program. The standard library asks for
//! shared libraries; a folder that the linker searches first has files of their names, which point
//! to the archives. Only the gnu target needs this.

use std::{env, fs, io, path::PathBuf, process::Command};

/// Every shared library that the standard library asks for, and the archives with what is in it.
const ARCHIVES: [(&str, &str); 7] = [
    // The C library unwinds as well, and not every linker looks back.
    ("c", "libc.a libgcc_eh.a libgcc.a libc.a"),
    ("gcc_s", "libgcc_eh.a libgcc.a"),
    ("m", "libm.a"),
    ("dl", "libdl.a"),
    ("pthread", "libpthread.a"),
    ("rt", "librt.a"),
    ("util", "libutil.a"),
];

/// Has this program linked so. `this_file` is where the package finds this file.
pub(crate) fn link(program: &str, this_file: &str) -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={this_file}");
    if variable("CARGO_CFG_TARGET_ENV").as_deref() != Some("gnu") {
        return Ok(());
    }
    if let Some(missing) = missing_archive() {
        println!(
            "cargo::error=there is no {missing} to link {program} with; install the \
             archives of the C library (Debian: libc6-dev, Fedora: glibc-static)"
        );
        return Ok(());
    }
    let folder = PathBuf::from(variable("OUT_DIR").unwrap_or_default());
    for (library, archives) in ARCHIVES {
        let script = format!("GROUP ( {archives} )\n");
        fs::write(folder.join(format!("lib{library}.so")), script)?;
    }
    for argument in [&format!("-L{}", folder.display()), "-static-pie"] {
        println!("cargo::rustc-link-arg-bin={program}={argument}");
    }
    Ok(())
}

/// The first archive that the linker will not find, where it can be asked.
fn missing_archive() -> Option<&'static str> {
    let linker = variable("RUSTC_LINKER").unwrap_or("cc".to_owned());
    let archives = ARCHIVES
        .iter()
        .flat_map(|(_, archives)| archives.split(' '));
    archives.into_iter().find(|archive| {
        let asked = Command::new(&linker)
            .arg(format!("-print-file-name={archive}"))
            .output();
        // It repeats the name of what it does not know.
        asked.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).trim() == *archive)
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells build scripts everything this way"
)]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}
