//! Machines on networks of their own, and partitions between them, by network namespaces.
//!
//! Three namespaces: the server's, a router's, and the laptop's, which has two networks to be on.
//! The router drops packets without a word, as a firewall or a lift does: neither end hears of it. Nothing on the host changes, and nothing reaches another machine. Needs root.

use std::{
    fs::File,
    os::fd::AsFd as _,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The server's address, which the router and both of the laptop's networks lead to.
const SERVER: &str = "10.77.0.1";

/// The laptop's networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// At its desk.
    Office,
    /// On the way home.
    Train,
}

impl Network {
    /// The laptop's address on it, the router's, and the name of the laptop's device.
    fn parts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Office => ("10.77.1.2", "10.77.1.1", "office"),
            Self::Train => ("10.77.2.2", "10.77.2.1", "train"),
        }
    }
}

/// The namespaces; removed when it is dropped.
#[derive(Debug)]
pub struct Machines {
    server: String,
    router: String,
    laptop: String,
}

impl Machines {
    /// Makes them, with the laptop in the office, and moves the calling thread to the server's
    /// machine: what it starts and whom it talks to from now on is there. So a test that calls
    /// this keeps to one thread.
    ///
    /// # Panics
    /// If the system refuses; `tests/run` leaves out the scenarios of this where it would.
    pub fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = |machine: &str| format!("gantry-{}-{number}-{machine}", std::process::id());
        let machines = Self {
            server: name("server"),
            router: name("router"),
            laptop: name("laptop"),
        };
        for name in [&machines.server, &machines.router, &machines.laptop] {
            ip(&["netns", "add", name]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        machines.connect(&machines.server, "uplink", SERVER, "10.77.0.254", "server");
        for network in [Network::Office, Network::Train] {
            let (laptop, router, device) = network.parts();
            machines.connect(&machines.laptop, device, laptop, router, device);
        }
        machines.default_route(&machines.server, "10.77.0.254");
        machines.move_laptop(Network::Office);
        let forward = [
            "netns",
            "exec",
            &machines.router,
            "sysctl",
            "-qw",
            "net.ipv4.ip_forward=1",
        ];
        ip(&forward);
        machines.nft("add table inet cut");
        machines.nft("add chain inet cut forward { type filter hook forward priority 0; }");
        let own = File::open(format!("/run/netns/{}", machines.server));
        let own = own.expect("the namespace was made");
        let kind = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(own.as_fd(), kind).expect("root may move");
        machines
    }

    /// What the server listens on.
    pub fn listen(&self) -> String {
        format!("{SERVER}:0")
    }

    /// What starts a program on the laptop.
    pub fn laptop(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.laptop]
    }

    /// Takes the laptop from one network to the other, where it has another address.
    pub fn move_laptop(&self, to: Network) {
        let from = match to {
            Network::Office => Network::Train,
            Network::Train => Network::Office,
        };
        ip(&["-n", &self.laptop, "link", "set", from.parts().2, "down"]);
        let (_, gateway, device) = to.parts();
        ip(&["-n", &self.laptop, "link", "set", device, "up"]);
        self.default_route(&self.laptop, gateway);
    }

    /// From now on the router drops what goes to the server, and what goes to the laptop.
    pub fn part(&self) {
        self.drop_packets("");
    }

    /// From now on the router drops what goes to the server only: the laptop hears, and is not
    /// heard.
    pub fn drop_to_server(&self) {
        self.drop_packets(&format!("ip daddr {SERVER}"));
    }

    /// Lets everything through again.
    pub fn heal(&self) {
        self.nft("flush chain inet cut forward");
    }

    /// A rule for what the router forwards: what fits (everything, where nothing is named) is
    /// dropped.
    fn drop_packets(&self, fits: &str) {
        self.nft(&format!("add rule inet cut forward {fits} drop"));
    }

    fn nft(&self, command: &str) {
        ip(&["netns", "exec", &self.router, "nft", command]);
    }

    /// A cable between a machine's device and the router's.
    fn connect(&self, machine: &str, device: &str, address: &str, gateway: &str, port: &str) {
        let port = format!("to-{port}");
        let link = ["link", "add", device, "type", "veth", "peer", "name", &port];
        ip(&[&["-n", machine], &link[..], &["netns", &self.router]].concat());
        for (name, device, address) in [
            (machine, device, address),
            (&self.router, port.as_str(), gateway),
        ] {
            let address = format!("{address}/24");
            ip(&["-n", name, "addr", "add", &address, "dev", device]);
            ip(&["-n", name, "link", "set", device, "up"]);
        }
    }

    fn default_route(&self, machine: &str, gateway: &str) {
        ip(&["-n", machine, "route", "replace", "default", "via", gateway]);
    }
}

impl Default for Machines {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in [&self.laptop, &self.router, &self.server] {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

fn ip(arguments: &[&str]) {
    let done = Command::new("ip").args(arguments).status();
    assert!(
        done.expect("ip is installed").success(),
        "failed to run: ip {}",
        arguments.join(" ")
    );
}
