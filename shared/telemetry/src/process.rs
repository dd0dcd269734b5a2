//! The system's figures about this process, under the names that every exporter uses
//! (<https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>). They are read from `/proc` on each
//! request (proc(5)).
//!
//! Figures that the system does not give are left out.

use std::fs;

/// Clock ticks in a second, as `/proc` counts them: `USER_HZ` is 100 on every architecture that this is
/// built for.
const TICKS_PER_SECOND: f64 = 100.0;

/// Bytes of a "kB" of `/proc/self/status`.
const KIB: f64 = 1024.0;

/// The value of an unlimited limit: `RLIM_INFINITY`, 2^64 - 1.
const UNLIMITED: f64 = 18_446_744_073_709_551_615.0;

/// A value of the process: name, kind, help.
pub(crate) const ALL: [(&str, &str, &str); 8] = [
    (
        "process_cpu_seconds_total",
        "counter",
        "Processor time of the process, user and system, in seconds.",
    ),
    (
        "process_resident_memory_bytes",
        "gauge",
        "Memory of the process that is resident, in bytes.",
    ),
    (
        "process_virtual_memory_bytes",
        "gauge",
        "Address space of the process, in bytes.",
    ),
    (
        "process_open_fds",
        "gauge",
        "Files and connections that the process has open.",
    ),
    (
        "process_max_fds",
        "gauge",
        "Files and connections that the process may have open.",
    ),
    ("process_threads", "gauge", "Threads of the process."),
    (
        "process_start_time_seconds",
        "gauge",
        "When the process was started, in seconds since 1970.",
    ),
    (
        "process_virtual_memory_max_bytes",
        "gauge",
        "Address space that the process may have, in bytes; the largest number where it has no limit.",
    ),
];

/// All values that are known now, in the text format of Prometheus.
pub(crate) fn render() -> String {
    let values = [
        cpu_seconds(),
        status("VmRSS:").map(|kib| kib * KIB),
        status("VmSize:").map(|kib| kib * KIB),
        open_files(),
        limit("Max open files"),
        status("Threads:"),
        started_at(),
        limit("Max address space"),
    ];
    let mut text = String::new();
    for ((name, kind, help), value) in ALL.into_iter().zip(values) {
        if let Some(value) = value {
            text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
    }
    text
}

/// The fields of `/proc/self/stat` behind the name of the program, which may hold anything: the first is
/// the third of the page.
fn stat(field: usize) -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(field - 3)?.parse().ok()
}

fn cpu_seconds() -> Option<f64> {
    Some((stat(14)? + stat(15)?) / TICKS_PER_SECOND)
}

fn started_at() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let booted = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    let booted: f64 = booted.trim().parse().ok()?;
    Some(booted + stat(22)? / TICKS_PER_SECOND)
}

fn status(name: &str) -> Option<f64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}

fn open_files() -> Option<f64> {
    // Without the one that reads them.
    let count = fs::read_dir("/proc/self/fd").ok()?.count();
    u32::try_from(count.saturating_sub(1)).ok().map(f64::from)
}

/// The soft limit, as `getrlimit(2)` has it.
fn limit(name: &str) -> Option<f64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    match value.split_whitespace().next()? {
        "unlimited" => Some(UNLIMITED),
        value => value.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_each_value_of_this_process() {
        let text = render();
        for (name, kind, _) in ALL {
            assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{text}");
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
            let value: f64 = lines
                .find_map(|line| line.trim().parse().ok())
                .unwrap_or_else(|| panic!("{name} has a value: {text}"));
            assert!(value >= 0.0, "{name} {value}");
        }
    }
}
