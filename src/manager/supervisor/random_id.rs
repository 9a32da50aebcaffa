//! Random ids for boots and runs.

use ring::rand::{SecureRandom as _, SystemRandom};

/// 64 random bits in hexadecimal. The id of a run is also the cookie by which its orphans are
/// recognised, so two ids must not be equal by chance.
///
/// # Panics
/// If the kernel has no random numbers; every kernel that can run an engine has them.
pub(super) fn random_id() -> String {
    format!("{:016x}", random_number())
}

/// 64 random bits.
///
/// # Panics
/// The panic of [`random_id`].
pub(super) fn random_number() -> u64 {
    let mut bytes = [0_u8; 8];
    let filled = SystemRandom::new().fill(&mut bytes);
    assert!(filled.is_ok(), "the kernel gives no random numbers");
    u64::from_ne_bytes(bytes)
}
