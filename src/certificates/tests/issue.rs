//! Certificates that are really made.

use stayput_http::pem::certificates;

use super::{DAY, HOUR, START, YEAR};
use crate::issue::{IssueError, authority, read_authorities, read_serving, select, serving};

#[test]
fn what_is_made_is_read_again() {
    let ca = authority("logs", START).unwrap();
    let [read] = read_authorities(ca.certificate.as_bytes()).unwrap().try_into().unwrap();
    assert_eq!(
        (read.validity.not_before, read.validity.not_after),
        (START - HOUR, START + 10 * YEAR)
    );
    let made = serving(&ca, "logs", "stayput", START + DAY).unwrap();
    let other = authority("logs", START).unwrap();
    let cas = [other.certificate.as_bytes(), ca.certificate.as_bytes()];
    let found = read_serving(made.certificate.as_bytes(), &cas, "stayput").unwrap();
    assert_eq!((found.signed_by, found.is_named), (Some(read.id), true));
    assert_eq!(found.validity.not_after, START + DAY + YEAR);
    let found = read_serving(made.certificate.as_bytes(), &cas[..1], "other").unwrap();
    assert_eq!((found.signed_by, found.is_named), (None, false));
    assert!(read_serving(b"no PEM", &cas, "stayput").is_err());
}

#[test]
fn it_never_outlives_its_ca() {
    let ca = authority("logs", START).unwrap();
    let late = serving(&ca, "logs", "stayput", START + 10 * YEAR - DAY).unwrap();
    let found = read_serving(late.certificate.as_bytes(), &[], "stayput").unwrap();
    assert_eq!(found.validity.not_after, START + 10 * YEAR);
}

#[test]
fn a_key_of_another_ca_is_refused() {
    let (mut ca, other) = (authority("logs", START).unwrap(), authority("logs", START).unwrap());
    ca.key = other.key;
    let made = serving(&ca, "logs", "stayput", START);
    assert!(matches!(made, Err(IssueError::OtherKey)), "{made:?}");
    ca.key = "no key".into();
    assert!(serving(&ca, "logs", "stayput", START).is_err());
}

#[test]
fn a_long_name_of_a_cluster_is_no_obstacle() {
    let name = "l".repeat(253);
    let ca = authority(&name, START).unwrap();
    assert!(serving(&ca, &name, "stayput", START).is_ok());
}

#[test]
fn certificates_are_put_together_as_they_are_wanted() {
    let both = [authority("logs", START).unwrap(), authority("logs", START).unwrap()];
    let [one, other] = both.map(|pair| pair.certificate);
    let together = format!("{one}\n{other}");
    let ids: Vec<_> =
        read_authorities(together.as_bytes()).unwrap().iter().map(|one| one.id).collect();
    let swapped = select(&[together.as_bytes()], &[ids[1], ids[0]]);
    let read = certificates("swapped", swapped.as_bytes()).unwrap();
    assert_eq!(read.len(), 2);
    let again: Vec<_> =
        read_authorities(swapped.as_bytes()).unwrap().iter().map(|one| one.id).collect();
    assert_eq!(again, [ids[1], ids[0]]);
    assert_eq!(select(&[one.as_bytes(), other.as_bytes()], &ids[..1]).trim(), one.trim());
}

#[test]
fn a_key_is_never_shown() {
    assert_eq!(format!("{:?}", authority("logs", START).unwrap()), "Pair(…)");
}
