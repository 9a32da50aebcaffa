//! Limits of waits on the apiserver: by itself, `kube` waits for ever for a list, and for a watch that is
//! being set up.

use std::time::Duration;

use kube::Config;
use kube::runtime::watcher;

/// Time limit of a connection that brings nothing while an answer is awaited: longer than a watch lasts, and
/// shorter than a lost apiserver should stay unnoticed.
pub const READ_TIMEOUT: Duration = Duration::from_secs(90);
/// Length of one watch, in seconds; then the next one follows.
pub const WATCH_SECONDS: u32 = 60;

pub fn limited(mut config: Config) -> Config {
    config.read_timeout = Some(READ_TIMEOUT);
    // The time before a request, in which the connection was not used, does not count.
    config.reset_reader_on_write = true;
    config
}

/// Settings of every watch.
pub fn watch_config() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_SECONDS)
}
