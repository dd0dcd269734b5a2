//! How much memory a process has, by what the kernel says.

/// A line of `/proc/PID/status`, such as `VmRSS` or `VmHWM`, in bytes.
pub(crate) fn memory(pid: u32, name: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = status
        .lines()
        .find(|line| line.starts_with(name))
        .expect("Linux says it");
    let kib = line
        .split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse::<f64>().ok());
    kib.expect("it is a number") * 1024.0
}

/// Lets the peak (`VmHWM`) count from here (proc(5), clear_refs).
pub(crate) fn peak_from_here(pid: u32) {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("it is our process");
}
