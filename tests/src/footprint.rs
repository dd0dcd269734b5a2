//! What a server holds, before and after it was misused.

use shared_types::event::CallOutcome;

use crate::gantry::{Gantry, Runner, descriptors_of, eventually};

/// How much larger the server may be after misuse that sends several times as much. What is left
/// of it is the allocator's, not ours.
const GROWTH_AT_MOST: u64 = 48 * 1024 * 1024;

/// What a server holds of the system.
#[derive(Debug, Clone, Copy)]
pub struct Footprint {
    descriptors: usize,
    resident: u64,
}

/// A server with a runner named laptop that behaves, and what the server holds then.
pub async fn behaving() -> (Gantry, Runner, Footprint) {
    let gantry = Gantry::practice().await;
    let laptop = gantry.runner("laptop").await;
    gantry.talk().await.say("run echo warm").await;
    let before = Footprint::of(&gantry);
    (gantry, laptop, before)
}

/// Lets the peak of a process's memory count from here (proc(5), clear_refs).
///
/// # Panics
/// If it is not a process of ours.
pub fn peak_from_here(pid: u32) {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("it is our process");
}

/// The most memory that a process had at once, in bytes.
///
/// # Panics
/// If there is no such process.
pub fn peak_of(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|rest| rest.split_whitespace().next());
    let kilobytes = kilobytes.and_then(|kb| kb.parse::<u64>().ok());
    1024 * kilobytes.expect("a number")
}

impl Footprint {
    /// What the server holds now.
    pub fn of(gantry: &Gantry) -> Self {
        let pid = gantry.server_pid();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = resident.and_then(|rest| rest.split_whitespace().next());
        let kilobytes = kilobytes.and_then(|kb| kb.parse::<u64>().ok());
        Self {
            descriptors: descriptors_of(pid),
            resident: 1024 * kilobytes.expect("a number"),
        }
    }

    /// The server is ready, no larger than it was, nothing in it has panicked, and the runner that
    /// behaves still works.
    ///
    /// # Panics
    /// If it is not so.
    pub async fn is_restored(&self, gantry: &Gantry) {
        let log = gantry.log();
        assert!(!log.contains("panicked at"), "{log}");
        gantry.until_online("laptop", true).await;
        let chosen = gantry.client().use_runner("laptop").await;
        chosen.expect("it is chosen");
        let told = gantry.talk().await.say("run echo still here").await;
        let [(CallOutcome::Completed, text)] = told.calls()[..] else {
            panic!("one call: {:?}", told.calls())
        };
        assert!(text.contains("still here"), "{text}");
        assert_eq!(told.places()[0].runner_name, "laptop");
        let ready = reqwest::get(format!("{}/readyz", gantry.url())).await;
        assert_eq!(ready.expect("an answer").status(), 200);
        // Connections of the test's own clients may still be closing.
        eventually("the descriptors are closed", || async {
            (Self::of(gantry).descriptors <= self.descriptors + 2).then_some(())
        })
        .await;
        let grown = Self::of(gantry).resident.saturating_sub(self.resident);
        assert!(grown <= GROWTH_AT_MOST, "the server grew by {grown} bytes");
    }
}
