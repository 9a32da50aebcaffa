//! The listing is the one of coreutils, the checksum does not depend on the order, and parse errors
//! say what is wrong.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Vector {
    name: String,
    /// Content by path.
    files: BTreeMap<String, String>,
    listing: String,
    checksum: String,
}

fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("../../../proto/checksum-vectors.json")).expect("valid JSON")
}

#[test]
fn golden_vectors_hold() {
    let vectors = vectors();
    assert!(vectors.len() >= 6);
    for vector in vectors {
        let digests: Vec<_> = vector
            .files
            .iter()
            .map(|(path, content)| FileDigest::of(path.as_str(), content.as_bytes()))
            .collect();
        let listed = String::from_utf8(listing(&digests)).expect("the vectors are UTF-8");
        assert_eq!(listed, vector.listing, "listing of {}", vector.name);
        let checksum = Checksum::of_contents(vector.files);
        assert_eq!(checksum.as_str(), vector.checksum, "checksum of {}", vector.name);
        assert_eq!(Checksum::parse(&vector.checksum), Ok(checksum));
    }
}

#[test]
fn a_path_that_is_not_utf8_keeps_its_bytes() {
    let listed = listing(&[FileDigest::of(b"caf\xe9.yml".to_vec(), b"")]);
    assert!(listed.ends_with(b"  caf\xe9.yml\n"));
}

#[test]
fn a_wrong_checksum_is_refused_with_the_reason() {
    let right = Checksum::of_contents([("a", "b")]).to_string();
    for (text, reason) in [
        ("", "does not begin with"),
        ("sha512:00", "does not begin with"),
        (" sha256:00", "does not begin with"),
        ("sha256:00", "it has 2 digits"),
        (&format!("{right}0"), "it has 65 digits"),
        (&right.to_uppercase().replace("SHA", "sha"), "lower-case"),
        (&format!("{right}\n"), "'\\n' is not"),
    ] {
        let error = Checksum::parse(text).expect_err(text).to_string();
        assert!(error.contains(reason), "{text:?}: {error}");
        assert!(error.contains("config.checksum of the status"), "{error}");
    }
    let long = "é".repeat(10_000);
    assert!(Checksum::parse(&long).expect_err("long").to_string().len() < 600);
}

fn names() -> impl Strategy<Value = Vec<u8>> {
    // Small alphabet: the bytes that are escaped, that sort oddly, and that are not UTF-8.
    let byte = prop_oneof![Just(b'\\'), Just(b'\n'), Just(b'\r'), Just(b'/'), Just(0xe9), 1u8..128];
    proptest::collection::vec(byte, 1..12)
}

fn unescaped(line: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (escaped, line) = match line.strip_prefix(b"\\") {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (hex, path) = (line[..64].to_vec(), &line[66..]);
    assert_eq!(&line[64..66], b"  ");
    let mut bytes = path.iter();
    let mut path = Vec::new();
    while let Some(byte) = bytes.next() {
        path.push(match byte {
            b'\\' if escaped => match bytes.next() {
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b'\\') => b'\\',
                other => panic!("unknown escape {other:?}"),
            },
            byte => *byte,
        });
    }
    (hex, path)
}

proptest! {
    #[test]
    fn the_listing_can_be_read_back(files in proptest::collection::btree_map(names(), any::<[u8; 3]>(), 0..8)) {
        let digests: Vec<_> =
            files.iter().map(|(path, content)| FileDigest::of(path.clone(), content)).collect();
        let listed = listing(&digests);
        prop_assert_eq!(listed.iter().filter(|byte| **byte == b'\n').count(), files.len());
        let lines: Vec<_> = listed
            .strip_suffix(b"\n")
            .map(|all| all.split(|byte| *byte == b'\n').map(unescaped).collect())
            .unwrap_or_default();
        // A BTreeMap iterates in the order of the path's bytes, which is the order promised.
        let expected: Vec<_> = digests
            .iter()
            .map(|file| (file.sha256.to_string().into_bytes(), file.path.clone()))
            .collect();
        prop_assert_eq!(lines, expected);
    }

    #[test]
    fn the_order_of_the_files_does_not_matter(
        files in proptest::collection::btree_map(names(), any::<u8>(), 0..8)
            .prop_flat_map(|files| {
                let files: Vec<_> = files.into_iter().collect();
                (Just(files.clone()), Just(files).prop_shuffle())
            })
    ) {
        let of = |files: Vec<(Vec<u8>, u8)>| {
            Checksum::of_contents(files.into_iter().map(|(path, content)| (path, [content])))
        };
        let (sorted, shuffled) = files;
        prop_assert_eq!(of(sorted), of(shuffled));
    }

    #[test]
    fn another_content_or_name_is_another_checksum(
        path in names(), other in names(), content: Vec<u8>, changed: Vec<u8>
    ) {
        prop_assume!(path != other && content != changed);
        let of = |path: &Vec<u8>, content: &Vec<u8>| Checksum::of_contents([(path.clone(), content)]);
        prop_assert_ne!(of(&path, &content), of(&other, &content));
        prop_assert_ne!(of(&path, &content), of(&path, &changed));
    }

    #[test]
    fn parsing_never_panics_and_accepts_only_its_own(text in "\\PC*") {
        if let Ok(checksum) = Checksum::parse(&text) {
            prop_assert_eq!(checksum.as_str(), text);
        }
    }
}
