//! The module `config_watch` from outside: reading, watching, staging, last good.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as the test itself may")]

mod last_good;
mod pinned;
mod reading;
mod staging;
mod watching;

use std::path::Path;

use stayput_api::checksum::Checksum;
use stayput_manager::config_watch::{ConfigDir, ConfigSettings, ConfigWatch, Stage};
use stayput_manager::errors::Errors;
use stayput_manager::worker::Worker;

use crate::support::kubelet::Payload;

/// A watch with threads of its own.
async fn start(settings: ConfigSettings) -> ConfigWatch {
    let worker = |name| Worker::start(name, &Errors::default()).unwrap();
    ConfigWatch::start(settings, worker("config"), worker("staging"), Errors::default()).await
}

/// Settings for one directory without a name.
fn only(path: &Path) -> ConfigSettings {
    let dirs = vec![ConfigDir { name: None, path: path.to_owned() }];
    ConfigSettings { dirs, ..ConfigSettings::default() }
}

/// The same, staged.
fn staged(source: &Path, target: &Path) -> ConfigSettings {
    let stage = vec![Stage { source: source.to_owned(), target: target.to_owned() }];
    ConfigSettings { stage, ..only(source) }
}

/// The expected checksum of a payload.
fn checksum(payload: &Payload) -> Checksum {
    Checksum::of_contents(payload.iter().map(|(path, content)| (path.as_str(), content)))
}
