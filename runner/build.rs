//! Links `gantry-runner` without anything of its host.

#[path = "static_program.rs"]
mod static_program;

fn main() -> std::io::Result<()> {
    static_program::link("gantry-runner", "static_program.rs")
}
