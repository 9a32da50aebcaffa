//! Who is evicted for whom.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use http_body_util::Empty;
use hyper::body::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::*;

const CAPACITY: Capacity = Capacity { connections: 8, per_address: 4 };

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
    table(connections).evicted_for(&CAPACITY, from(newcomer))
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

#[test] // proves ACCESS-8, ACCESS-16
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
        table.request_is_call(&CAPACITY, number);
    }
    let calls = table.connections.values().filter(|held| held.used == Call).count();
    assert_eq!(calls, 6);
    assert_eq!(table.evicted_for(&CAPACITY, from(2)), Some(6));
}

#[test]
fn an_ended_request_leaves_what_its_connection_has_shown() {
    let mut table = table(&[(1, Silent); 2]);
    for number in 0..2 {
        table.request_begins(number);
    }
    table.request_is_call(&CAPACITY, 1);
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
    static EVICTIONS: AtomicU32 = AtomicU32::new(0);
    let count = || {
        EVICTIONS.fetch_add(1, Ordering::Relaxed);
    };
    let places = Places::new(Capacity { connections: 1, per_address: 1 }, count, || ());
    let (first, evicted) = places.enter(from(1), places.descriptor().await);
    let (second, _evicted) = places.enter(from(2), places.descriptor().await);
    evicted.wait().await;
    assert_eq!(EVICTIONS.load(Ordering::Relaxed), 1);
    assert_eq!(places.descriptors.available_permits(), 0);
    drop(first);
    assert_eq!(places.descriptors.available_permits(), 1);
    drop(second);
    places.all_closed().await;
    assert!(places.table().connections.is_empty());
}

/// The first bytes of the answer on a new connection to this server, and the connection.
async fn ask(address: SocketAddr) -> (String, TcpStream) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let mut head = [0; 15];
    stream.read_exact(&mut head).await.unwrap();
    (String::from_utf8_lossy(&head).into_owned(), stream)
}

#[tokio::test] // proves ACCESS-16
async fn a_newcomer_is_served_while_all_places_are_taken() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = Limits { connections: 2, head: Duration::from_secs(60), whole: None };
    let answer = |_| ready(Response::new(Empty::<Bytes>::new()));
    let server = tokio::spawn(serve(listener, limits, answer));
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(TcpStream::connect(address).await.unwrap());
    }
    let (head, mut kept) = ask(address).await;
    assert_eq!(head, "HTTP/1.1 200 OK");
    // The oldest has lost its place.
    assert_eq!(held[0].read(&mut [0]).await.unwrap_or(0), 0);
    // Without the server no connection is left.
    server.abort();
    while kept.read(&mut [0; 64]).await.unwrap_or(0) > 0 {}
}

/// Cannot accept at first; then one connection, and no further one.
struct OutOfDescriptors(AtomicU32);

impl Listener for OutOfDescriptors {
    type Stream = ();

    async fn next(&self) -> io::Result<((), Origin)> {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0..3 => Err(io::Error::from_raw_os_error(24)),
            3 => Ok(((), from(1))),
            _ => std::future::pending().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_cannot_accept_is_tried_again_after_a_pause() {
    let (began, served) = (Instant::now(), Arc::new(Notify::new()));
    let places = Places::new(CAPACITY, || {}, || {});
    let connection = |(), _, place: Place| {
        let served = Arc::clone(&served);
        async move {
            served.notify_one();
            drop(place);
        }
    };
    tokio::select! {
        () = places.accept(OutOfDescriptors(AtomicU32::new(0)), connection) => {}
        () = served.notified() => {}
    }
    assert_eq!(began.elapsed(), 3 * ACCEPT_RETRY_DELAY);
}
