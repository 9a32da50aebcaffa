//! The one task that owns the engine, its timers and every wait.

mod handle;

pub use handle::Handle;
