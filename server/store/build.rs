//! Compiles anew when a migration comes: the macro that embeds them sees only those it knew.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
