//! Names that nobody else has.

use ring::rand::{SecureRandom, SystemRandom};

/// Twelve random hexadecimal digits. Two that are the same would make two requests one.
///
/// # Errors
/// A sentence, if the system has no random numbers.
pub(super) fn fresh_id() -> Result<String, String> {
    let mut bytes = [0; 6];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system has no random numbers")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
