//! The edited template of an OnDelete StatefulSet, carried out by the reconciler on a real kubelet,
//! with programs that are killed and templates that are set back. The engines are stand-ins; claims
//! and volumes are real. What stays of each pod by row is in `ladder`, with real engines.

mod crashes;
mod reverted;
mod room;
mod set;
mod sizes;
mod stage;
