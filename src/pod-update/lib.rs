//! The least step that brings each pod to a changed declaration. Nothing here reads a clock, a file
//! or the network.
//!
//! * [`compare`]: the template and content that a pod was made from against those that are wanted.
//! * [`with_content`]: both in one stop, where changed Secrets and ConfigMaps join a change of the template.
//! * [`uses`]: which Secrets and ConfigMaps a pod reads, and how a change of them arrives there.
//! * [`mounted_config`]: which of them the config of its engine is made from.
//! * [`unwatched`]: which of them its engine reads, and nobody watches.
//! * [`manager_option`]: an option of the manager, as a container gives it.
//! * [`environment`]: the variables that its manager gives the engine of a pod.
//! * [`needs_coordinated`]: whether two configs of the engine may serve beside each other.
#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_macros, clippy::wildcard_enum_match_arm)]

mod compare;
mod content;
mod difference;
mod environment;
mod fields;
mod mounted_config;
mod note;
mod operators;
mod resources;
mod room;
mod settings;
mod template;
mod update;
mod uses;

pub use compare::{Abilities, Declaration, Difference, Update, compare};
pub use content::{Content, EarlierDigests, IGNORE, Ignore, Source, SourceKind};
pub use environment::environment;
pub use mounted_config::{
    ConfigNotFound, MountedConfig, MountedPart, NotWritten, Unwatched, manager_option,
    mounted_config, unwatched,
};
pub use note::{Age, Compared, InitNote, Note, Other, OtherNote, Started, compare_content};
pub use resources::{in_effect, resized, thousandths};
pub use room::{Amounts, PodRequests, why_no_room};
pub use settings::{
    EngineVersion, Reason, Settings, container_settings, decisive, needs_coordinated, settings,
};
pub use template::{is_made_anew, runs_once};
pub use update::{
    CONTENT, Change, ContentWays, GivenSettings, PodPatch, PodUpdate, UpdateStep, with_content,
};
pub use uses::{Arrival, Use, uses};

#[cfg(test)]
mod tests;
