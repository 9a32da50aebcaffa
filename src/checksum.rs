//! One checksum over a set of files, the same for manager and reconciler.
