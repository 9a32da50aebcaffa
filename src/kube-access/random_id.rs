//! Random ids of requests.

use ring::rand::{SecureRandom, SystemRandom};

/// Error: the operating system gave no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no random numbers")]
pub struct NoRandomNumbers;

/// Twelve random hexadecimal digits. Two requests with the same id would count as one.
pub fn random_id() -> Result<String, NoRandomNumbers> {
    let mut bytes = [0; 6];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomNumbers)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
