//! Finds out which kind of public key a `PUBLIC KEY` document holds, and unwraps it for ring.

use jsonwebtoken::{Algorithm, DecodingKey};

/// The bytes before the 65 bytes of an uncompressed P-256 point.
const P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// The bytes before the 32 bytes of an Ed25519 key.
const ED25519: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// The algorithm of an RSA key, with its header.
const RSA: [u8; 15] =
    [0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;

/// The key and the one algorithm it is used with, or `None` if it is of another kind.
pub(super) fn read(der: &[u8]) -> Option<(Algorithm, DecodingKey)> {
    if let Some(point) = der.strip_prefix(&P256) {
        return (point.len() == 65).then(|| (Algorithm::ES256, DecodingKey::from_ec_der(point)));
    }
    if let Some(key) = der.strip_prefix(&ED25519) {
        return (key.len() == 32).then(|| (Algorithm::EdDSA, DecodingKey::from_ed_der(key)));
    }
    let bits = value(SEQUENCE, der)?.strip_prefix(&RSA)?;
    let key = value(BIT_STRING, bits)?.strip_prefix(&[0])?;
    Some((Algorithm::RS256, DecodingKey::from_rsa_der(key)))
}

/// The value of the one DER element that fills `der`.
fn value(tag: u8, der: &[u8]) -> Option<&[u8]> {
    let rest = der.strip_prefix(&[tag])?;
    let (&first, rest) = rest.split_first()?;
    let (length, value) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => (usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?])), rest.get(2..)?),
        _ => return None,
    };
    (value.len() == length).then_some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let rsa = [&[SEQUENCE, 0x82, 0x01][..], &bytes].concat();
            read(&bytes);
            read(&rsa);
            read(&[&P256[..], &bytes].concat());
        }
    }
}
