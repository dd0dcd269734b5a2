//! The two ends of `runner_host::Inside`: the real program in a temporary folder, and one that lies.

mod lying;
mod peer;
mod program;
mod scene;
