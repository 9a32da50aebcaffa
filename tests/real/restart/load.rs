//! Writes and searches while nodes come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::json;

use crate::support::cluster::Rest;

pub(super) const INDEX: &str = "load";
/// More than can be written during any restart here.
const MOST: usize = 50_000;
/// The pause between two requests: the engines share two processors with everything else.
const PACE: Duration = Duration::from_millis(60);

/// Creates the index: two shards, each with a replica.
pub(super) fn create(rest: Rest) {
    let settings = json!({ "settings": { "number_of_shards": 2, "number_of_replicas": 1 } });
    let target = format!("/{INDEX}?wait_for_active_shards=all");
    rest.send("PUT", &target, Some(&settings)).expect("an answer").expect(200);
}

/// The result of the load.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// The ids below this one were acknowledged.
    pub(super) written: usize,
    /// The number of writes that were repeated.
    pub(super) retries: usize,
    /// The number of complete answers to searches.
    pub(super) searches: usize,
    /// The number of searches that no node could answer completely, and that were repeated.
    pub(super) failed_searches: usize,
}

/// Writer and searcher, until [`Load::end`].
pub(super) struct Load {
    ended: Arc<AtomicBool>,
    writer: JoinHandle<(usize, usize)>,
    searcher: JoinHandle<(usize, usize)>,
}

impl Load {
    /// Writes documents from the id `first` on.
    pub(super) fn start(nodes: &[Rest], first: usize) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let (is_over, all) = (ended.clone(), nodes.to_vec());
        let writer = thread::spawn(move || {
            let (mut id, mut tries) = (first, 0);
            while !is_over.load(Ordering::Relaxed) && id < first + MOST {
                // Any node is good; a stopped one is skipped.
                if all[(id + tries) % all.len()].index(INDEX, id) {
                    id += 1
                } else {
                    tries += 1
                }
                thread::sleep(PACE);
            }
            (id, tries)
        });
        let (is_over, all) = (ended.clone(), nodes.to_vec());
        let searcher = thread::spawn(move || {
            let (mut whole, mut failed) = (0, 0);
            while !is_over.load(Ordering::Relaxed) {
                let found = all.iter().cycle().skip(whole).take(all.len());
                match found.filter_map(|node| node.search(INDEX)).next() {
                    Some(_) => whole += 1,
                    None => failed += 1,
                }
                thread::sleep(PACE);
            }
            (whole, failed)
        });
        Self { ended, writer, searcher }
    }

    /// Ends both; a write under way is completed.
    pub(super) fn end(self) -> Work {
        self.ended.store(true, Ordering::Relaxed);
        let (written, retries) = self.writer.join().expect("the writer ends");
        let (searches, failed_searches) = self.searcher.join().expect("the searcher ends");
        Work { written, retries, searches, failed_searches }
    }
}

/// Asserts that every document below `written` is found: by its id, and by a search.
#[track_caller]
pub(super) fn assert_found(rest: Rest, written: usize) {
    rest.send("POST", &format!("/{INDEX}/_refresh"), None).expect("an answer").expect(200);
    let ids: Vec<String> = (0..written).map(|id| id.to_string()).collect();
    for ids in ids.chunks(1000) {
        let target = format!("/{INDEX}/_mget?_source=false");
        let got = rest.send("POST", &target, Some(&json!({ "ids": ids })));
        let got = got.expect("an answer").expect(200);
        let docs = got["docs"].as_array().expect("documents");
        assert_eq!(docs.len(), ids.len());
        let lost: Vec<_> = docs.iter().filter(|doc| doc["found"] != true).collect();
        assert!(lost.is_empty(), "acknowledged, and not there: {lost:?}");
    }
    let found = rest.search(INDEX).expect("a whole answer");
    // The last write may have succeeded without its answer having arrived.
    assert!(found >= written as u64 && found <= written as u64 + 1, "{found} of {written}");
}
