//! Addresses at which an engine listens for HTTP: its manager uses loopback, and the reconciler the
//! pod's address, both with `spec.engine.port`.

use stayput_pod_update::Settings;

use crate::Engine;

/// Settings with the addresses at which an engine listens; the first one that is set applies.
const ADDRESSES: [&str; 4] = ["http.bind_host", "http.host", "network.bind_host", "network.host"];
const PORT: &str = "http.port";
/// Values that mean every address.
const ALL: [&str; 2] = ["0.0.0.0", "::"];
/// Values that mean loopback.
const LOOPBACK: [&str; 6] =
    ["_local_", "_local:ipv4_", "_local:ipv6_", "localhost", "127.0.0.1", "::1"];

/// Settings that would make the engine unreachable, each with the value to write.
pub(crate) fn unreachable(engine: &Engine, settings: &Settings) -> Vec<String> {
    let port = settings.get(PORT).filter(|port| **port != engine.port.to_string());
    let port = port.map(|port| {
        format!(
            "{PORT} is {port}, and the engine is asked at spec.engine.port, {}: take it out, and write \
             spec.engine.port",
            engine.port
        )
    });
    let written = ADDRESSES.into_iter().find_map(|name| Some((name, settings.get(name)?)));
    let address = written.filter(|(_, addresses)| !is_reached(addresses)).map(|(name, addresses)| {
        format!(
            "{name} is {addresses}, and the engine is asked on loopback and at the address of its pod: take \
             it out, or write 0.0.0.0; network.publish_host and transport.host may be others"
        )
    });
    port.into_iter().chain(address).collect()
}

fn is_reached(addresses: &str) -> bool {
    let each = || addresses.split(',').map(str::trim);
    let is_loopback = |address: &str| LOOPBACK.contains(&address);
    each().any(|address| ALL.contains(&address))
        || each().any(is_loopback) && !each().all(is_loopback)
}
