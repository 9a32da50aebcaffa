//! The edited template of an OnDelete StatefulSet, carried out by the reconciler on a real kubelet,
//! with programs that are killed. The engines are stand-ins; claims and volumes are real. What stays of each pod by
//! row, and templates that are set back, are in `ladder`, with real engines.

mod crashes;
mod never_started;
mod room;
mod set;
mod sizes;
mod stage;
