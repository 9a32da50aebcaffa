//! The link between this machine and a node: a veth pair. The end here has the control plane's
//! address, with a route to the pods. The kernel removes all of it with the node's namespace.

use std::net::Ipv4Addr;
use std::process::Command;

/// How many nodes a machine can have at once.
const SITES: u8 = 64;

/// The addresses of one cluster, from 198.18.0.0/15, which is reserved for benchmarks of network
/// devices, so no real network has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Network {
    number: u8,
}

impl Network {
    /// Takes a free one and creates the link into the network namespace of process `init`. The end
    /// here has the alias `mark`, which shows to which test it belongs.
    pub(crate) fn lay(init: i32, mark: &str) -> Self {
        for number in 0..SITES {
            let network = Self { number };
            let line =
                format!("link add {} type veth peer name eth0 netns {init}", network.device());
            match ip(&[], &line) {
                // Created by one system call, so no other process can have it.
                Ok(()) => return network.address_both(init, mark),
                Err(error) if error.contains("File exists") => {}
                Err(error) => panic!("no veth pair: {error}"),
            }
        }
        panic!("all {SITES} networks for clusters are taken: ip link show type veth");
    }

    fn address_both(self, init: i32, mark: &str) -> Self {
        let (device, host, node) = (self.device(), self.host(), self.node());
        let here = [
            format!("address add {host}/24 dev {device}"),
            format!("link set {device} alias {mark} up"),
            format!("route add {} via {node}", self.pods()),
        ];
        let there = [
            "link set lo up".to_owned(),
            format!("address add {node}/24 dev eth0"),
            "link set eth0 up".to_owned(),
            format!("route add default via {host}"),
        ];
        let target = init.to_string();
        let enter = ["nsenter", "--target", &target, "--net", "--"];
        // The node's end comes first, because a route here needs a neighbour.
        for line in &there {
            ip(&enter, line).unwrap_or_else(|error| panic!("ip {line}: {error}"));
        }
        for line in &here {
            ip(&[], line).unwrap_or_else(|error| panic!("ip {line}: {error}"));
        }
        self
    }

    fn device(self) -> String {
        format!("stayput{}", self.number)
    }

    const fn at(self, net: u8, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.number * 2 + net, host)
    }

    /// This machine's address for the node, on which the apiserver listens. It is also the address
    /// of the service `kubernetes`, so that pods reach it without a proxy.
    pub(crate) const fn host(self) -> Ipv4Addr {
        self.at(0, 1)
    }

    pub(crate) const fn node(self) -> Ipv4Addr {
        self.at(0, 254)
    }

    pub(crate) fn services(self) -> String {
        format!("{}/25", self.at(0, 0))
    }

    pub(crate) fn pods(self) -> String {
        format!("{}/24", self.at(1, 0))
    }

    /// After the gateway's address; used one after the other, and again only when all were used.
    pub(crate) fn pod_addresses(self) -> impl Iterator<Item = Ipv4Addr> {
        (2..255).map(move |host| self.at(1, host))
    }
}

fn ip(wrapper: &[&str], line: &str) -> Result<(), String> {
    let line: Vec<&str> = wrapper.iter().copied().chain(["ip"]).chain(line.split(' ')).collect();
    let output = Command::new(line[0]).args(&line[1..]).output();
    let output = output.map_err(|error| format!("{}: {error}", line[0]))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}
