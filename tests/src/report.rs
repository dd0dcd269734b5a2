//! Figures that a test is asked for, whether it passes or not.

use std::io::Write as _;

/// Says a line, and adds it to the file that `GANTRY_REPORT` names, which `make test` shows at its
/// end.
///
/// # Panics
/// If the file cannot be written.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests/run says where the lines are gathered"
)]
pub fn report(line: &str) {
    println!("{line}");
    if let Some(file) = std::env::var_os("GANTRY_REPORT") {
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file);
        writeln!(file.expect("the report can be opened"), "{line}").expect("it is written");
    }
}
