//! Compiles this crate again when a migration is added: the macro that embeds migrations sees only
//! those that it knew.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
