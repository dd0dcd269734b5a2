//! Links `gantry-files` without anything of its host.

#[path = "../static_program.rs"]
mod static_program;

fn main() -> std::io::Result<()> {
    static_program::link("gantry-files", "../static_program.rs")
}
