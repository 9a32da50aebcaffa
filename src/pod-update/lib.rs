//! The least step that brings each pod to a changed declaration. Nothing here reads a clock, a file
//! or the network.
//!
//! * [`compare`]: the template and content that a pod was made from against those that are wanted.
//! * [`with_content`]: both in one stop, where changed Secrets and ConfigMaps join a change of the template.
//! * [`uses`]: which Secrets and ConfigMaps a pod reads, and how a change of them arrives there.
//! * [`mounted_config`]: which of them the config of its engine is made from.
//! * [`unwatched`]: which of them its engine reads, and nobody watches.
//! * [`manager_option`]: an option of the manager, as a container gives it.
//! * [`needs_coordinated`]: whether two configs of the engine may serve beside each other.
#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_macros, clippy::wildcard_enum_match_arm)]

mod compare;
mod container_settings;
mod content;
mod coordinated;
mod difference;
mod fields;
mod ignore;
mod manager_options;
mod mounted_config;
mod note;
mod path;
mod quantity;
mod resize;
mod resources;
mod room;
mod run_once;
mod settings;
mod shown;
mod source;
mod step;
mod template;
mod tolerations;
mod unwatched;
mod update;
mod uses;
mod volumes;

pub use compare::{Abilities, Declaration, Difference, Update, compare};
pub use container_settings::container_settings;
pub use content::{Content, EarlierDigests};
pub use coordinated::{Reason, decisive, needs_coordinated};
pub use ignore::{IGNORE, Ignore};
pub use manager_options::{NotWritten, values as manager_option};
pub use mounted_config::{ConfigNotFound, MountedConfig, MountedPart, mounted_config};
pub use note::{Age, Compared, InitNote, Note, Other, OtherNote, Started, compare_content};
pub use quantity::thousandths;
pub use resources::{in_effect, resized};
pub use room::{Amounts, PodRequests, why_no_room};
pub use run_once::{WARM_CONTAINER, runs_once};
pub use settings::{EngineVersion, Settings, settings};
pub use source::{Source, SourceKind};
pub use step::UpdateStep;
pub use template::is_made_anew;
pub use unwatched::{Unwatched, unwatched};
pub use update::{CONTENT, Change, ContentWays, GivenSettings, PodPatch, PodUpdate, with_content};
pub use uses::{Arrival, Use, uses};

#[cfg(test)]
mod tests;
