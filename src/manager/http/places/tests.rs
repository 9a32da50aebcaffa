//! Who is evicted for whom.

use super::*;

const LIMITS: Limits = Limits { connections: 8, ..Limits::DEFAULT };

fn from(last: u8) -> Origin {
    Origin::Address(IpAddr::from([10, 0, 0, last]))
}

/// A table with these connections, numbered from 0.
fn table(connections: &[(u8, Use)]) -> Table {
    let mut table = Table::default();
    for (last, used) in connections {
        let number = table.enter(from(*last), None);
        table.connections.get_mut(&number).unwrap().used = *used;
    }
    table
}

fn evicted(connections: &[(u8, Use)], newcomer: u8) -> Option<u64> {
    table(connections).evicted_for(&LIMITS, from(newcomer))
}

use Use::{Call, Idle, Probe, Silent};

#[test]
fn nobody_goes_while_there_is_room() {
    assert_eq!(evicted(&[], 1), None);
    assert_eq!(evicted(&[(1, Silent), (1, Silent), (1, Probe), (2, Silent), (3, Idle)], 2), None);
}

#[test]
fn an_origin_with_its_share_takes_its_own_oldest_place() {
    let share = [(2, Silent), (1, Silent), (1, Silent), (1, Silent), (1, Silent)];
    assert_eq!(evicted(&share, 1), Some(1));
    assert_eq!(evicted(&share, 2), None);
}

#[test] // proves ACCESS-8
fn the_greediest_origin_loses_its_oldest_place() {
    let full = [
        (1, Silent), // the kubelet: it came first, but has one place only
        (2, Silent),
        (3, Probe),
        (3, Silent),
        (3, Silent),
        (2, Silent),
        (4, Call),
        (4, Idle),
    ];
    // Half a handshake before a probe that is being answered, though the probe is older.
    assert_eq!(evicted(&full, 1), Some(3));
    assert_eq!(evicted(&full, 9), Some(3));
}

#[test] // proves ACCESS-8
fn where_all_have_one_address_the_oldest_goes() {
    let full = [(1, Call), (1, Idle), (1, Call), (1, Silent), (1, Silent), (1, Silent)];
    let full = [full.as_slice(), &[(1, Call), (1, Call)]].concat();
    assert_eq!(evicted(&full, 1), Some(3));
}

#[test]
fn many_addresses_with_one_connection_each_lose_the_oldest() {
    let full: Vec<_> = (1..=8).map(|last| (last, Silent)).collect();
    assert_eq!(evicted(&full, 9), Some(0));
}

#[test]
fn callers_that_idle_leave_room_for_others() {
    let mut full = vec![(1, Idle); 7];
    full.push((2, Silent));
    assert_eq!(evicted(&full, 3), Some(0), "not the only one that has shown nothing yet");
    // With a quarter of the places the others have enough.
    full[6] = (2, Silent);
    assert_eq!(evicted(&full, 3), Some(6));
}

#[test]
fn calls_are_never_evicted_and_do_not_take_all_places() {
    let mut table = table(&[(1, Silent); 8]);
    for number in 0..8 {
        table.request_begins(number);
        table.request_is_call(&LIMITS, number);
    }
    let calls = table.connections.values().filter(|held| held.used == Call).count();
    assert_eq!(calls, 6);
    assert_eq!(table.evicted_for(&LIMITS, from(2)), Some(6));
}

#[test]
fn an_ended_request_leaves_what_its_connection_has_shown() {
    let mut table = table(&[(1, Silent); 2]);
    for number in 0..2 {
        table.request_begins(number);
    }
    table.request_is_call(&LIMITS, 1);
    for number in 0..2 {
        table.request_ends(number);
    }
    let used: Vec<_> = table.connections.values().map(|held| held.used).collect();
    assert_eq!(used, [Silent, Idle]);
    // A later request without credentials, or an evicted connection, changes nothing.
    table.request_begins(1);
    table.request_ends(1);
    table.request_ends(7);
    assert_eq!(table.connections[&1].used, Idle);
}

#[tokio::test]
async fn an_evicted_connection_keeps_its_descriptor_until_it_is_closed() {
    let limits = Limits { connections: 1, ..Limits::DEFAULT };
    let places = Places::new(limits, Counter::default());
    let (first, evicted) = places.enter(from(1), places.descriptor().await);
    let (second, _evicted) = places.enter(from(2), places.descriptor().await);
    evicted.wait().await;
    assert_eq!(places.evictions.get(), 1);
    assert_eq!(places.descriptors.available_permits(), 0);
    drop(first);
    assert_eq!(places.descriptors.available_permits(), 1);
    drop(second);
    places.all_closed().await;
    assert!(places.table().connections.is_empty());
}
