//! The REST interface of one node: changes and observations by tests.

use std::io;
use std::net::{Ipv4Addr, TcpStream};

use serde_json::{Value, json};

use crate::support::api::ANSWER_TIMEOUT;
use crate::support::http::{Answer, exchange};

/// A node's REST interface; threads can use a copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rest {
    pub(crate) address: Ipv4Addr,
    pub(crate) port: u16,
}

impl Rest {
    /// Sends a request to this node; an error if it does not listen or ends before its answer.
    pub(crate) fn send(
        self,
        method: &str,
        target: &str,
        body: Option<&Value>,
    ) -> io::Result<Answer> {
        let stream = TcpStream::connect((self.address, self.port))?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        exchange(stream, (method, target), body)
    }

    /// Stores a document through this node; returns whether it was acknowledged.
    pub(crate) fn index(self, index: &str, id: usize) -> bool {
        let target = format!("/{index}/_doc/{id}");
        let answer = self.send("PUT", &target, Some(&json!({ "number": id })));
        answer.is_ok_and(|answer| matches!(answer.status, 200 | 201))
    }

    /// Whether a document of [`Rest::index`] exists.
    #[track_caller]
    pub(crate) fn has(self, index: &str, id: usize) -> bool {
        let answer = self.send("GET", &format!("/{index}/_doc/{id}"), None);
        let answer = answer.expect("the engine answers");
        answer.status == 200 && answer.body["_source"]["number"] == id
    }

    /// How many documents of an index are found; none if this node cannot search it now.
    pub(crate) fn search(self, index: &str) -> Option<u64> {
        let query = json!({ "size": 0, "track_total_hits": true });
        let answer = self.send("POST", &format!("/{index}/_search"), Some(&query)).ok()?;
        let whole = answer.status == 200 && answer.body["_shards"]["failed"] == 0;
        if whole { answer.body["hits"]["total"]["value"].as_u64() } else { None }
    }
}
