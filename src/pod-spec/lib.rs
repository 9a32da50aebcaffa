//! The manager in the spec of a pod: which containers, volumes, variables, ports and probes put it in front of an
//! engine. Nothing here reads a clock, a file or the network.
//!
//! * [`Manager`]: the additions to the engine's container and to its pod.
//! * [`init_container`]: the container that brings the manager's program.
//! * [`Ready`]: how a manager asks its engine if it is ready.
//! * [`warming`]: an archive of the engine's classes, made before its first start.
//! * [`EngineImage`]: the known images of engines.
#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_macros, clippy::wildcard_enum_match_arm)]

mod image;
mod manager;
mod ready;
mod warm;

pub use image::{ELASTICSEARCH, EngineImage, OPENSEARCH};
pub use manager::{
    ENVIRONMENT, EngineConfig, GRACE, KEY_SET, Manager, NAME, PORT, PROGRAM, STATE,
    certificate_secret, command, init_container, liveness, readiness,
};
pub use ready::{AUTHORITY, Authority, LOGIN, Login, Ready, Source, URL, health, object_name};
pub use warm::{JVM_OPTIONS, WARM_CONTAINER, Warming, lacks_variables, warming};
