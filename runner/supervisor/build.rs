//! Links `gantry-supervisor` without anything of its host.

#[path = "../static_program.rs"]
mod static_program;

fn main() -> std::io::Result<()> {
    static_program::link("gantry-supervisor", "../static_program.rs")
}
