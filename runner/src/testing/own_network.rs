//! A network that nothing else is on, which only root can make. `tests/run` leaves out for other
//! users every test with `on_a_network_of_its_own` in its name.

use std::{
    fs::File,
    os::fd::AsFd as _,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace with a loopback interface; removed when it is dropped.
pub(crate) struct OwnNetwork(String);

impl OwnNetwork {
    /// Makes it, and moves the calling thread there: what it opens from now on is there.
    pub(crate) fn enter() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("gantry-{}-{number}-own", std::process::id());
        ip(&["netns", "add", &name]);
        let network = Self(name);
        network.ip("link set lo up");
        let own = File::open(format!("/run/netns/{}", network.0));
        let own = own.expect("the namespace was made");
        let kind = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(own.as_fd(), kind).expect("root may move");
        network
    }

    /// Changes it, in the words of ip(8).
    pub(crate) fn ip(&self, words: &str) {
        let words: Vec<_> = ["-n", &self.0]
            .into_iter()
            .chain(words.split(' '))
            .collect();
        ip(&words);
    }
}

impl Drop for OwnNetwork {
    fn drop(&mut self) {
        ip(&["netns", "del", &self.0]);
    }
}

fn ip(words: &[&str]) {
    let done = Command::new("ip").args(words).status();
    assert!(
        done.is_ok_and(|status| status.success()),
        "only root can make a network; `make test` leaves this out for others: ip {}",
        words.join(" ")
    );
}
