//! The programs under test: as cargo has just built them or, for measurements, as they ship.

use std::ffi::OsString;

pub(crate) use stayput_standin::harness::programs::{children, write_program};

/// The manager.
pub(crate) fn stayput() -> OsString {
    std::env::var_os("STAYPUT_MEASURED_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_stayput").into())
}

/// The reconciler.
pub(crate) fn reconciler() -> OsString {
    let measured = std::env::var_os("STAYPUT_MEASURED_RECONCILER_BIN");
    measured.unwrap_or_else(|| env!("CARGO_BIN_EXE_stayput-reconciler").into())
}
