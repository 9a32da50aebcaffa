//! The protocol between nodes: the first line of the connection, a line of JSON, a line of answer;
//! then the connection is closed. Only [`Message::Follow`] keeps its connection: see `publish.rs`.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::state::{Command, NodeInfo, State};
use super::{Cluster, Mode};
use crate::engine::data::{Document, ShardId};
use crate::engine::print_error;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(1);

/// The requests of one node to another.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// Report your id and your master.
    Hello,
    /// Vote for me. `last`: term and version of the state that I would continue with.
    Vote { term: u64, last: (u64, u64) },
    /// Become a member of my cluster. The connection stays open.
    Follow { term: u64, leader: NodeInfo },
    /// Add me to your cluster.
    Join { node: NodeInfo, term: u64 },
    /// Store this state.
    Accept { leader: String, state: Box<State> },
    /// Enough nodes have stored that state: commit it.
    Commit { term: u64, version: u64 },
    /// As master, change the state.
    Command(Command),
    /// As primary, store a document.
    Write { index: String, shard: usize, id: String, source: Value },
    /// As another copy, store a document.
    Replicate { index: String, shard: ShardId, document: Document },
    /// Return a document.
    Read { shard: ShardId, id: String },
    /// Return this many documents, and the number of all.
    List { shard: ShardId, most: usize },
    /// As primary, return all documents.
    Dump { index: String, shard: ShardId },
    /// As new copy, get all documents from that node.
    Recover { index: String, shard: ShardId, primary: NodeInfo },
    /// Return the number of documents and bytes of your copies.
    Sizes,
}

/// Number of documents and bytes, by shard.
pub(crate) type Sizes = BTreeMap<String, (usize, u64)>;

/// Answer to [`Message::Hello`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) node: NodeInfo,
    pub(super) leader: Option<NodeInfo>,
    pub(super) term: u64,
    /// Term and version of the state that it would continue with.
    pub(super) last: (u64, u64),
}

/// Starts a thread; its stack is small because no call is deep.
pub(super) fn thread(run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().stack_size(256 * 1024).spawn(run)
}

/// Accepts connections of the other nodes, in the background.
pub(super) fn serve(cluster: &Arc<Cluster>, listener: TcpListener) -> io::Result<()> {
    let cluster = Arc::clone(cluster);
    thread(move || {
        for stream in listener.incoming().flatten() {
            if cluster.lock().mode == Mode::Closed {
                continue;
            }
            let cluster = Arc::clone(&cluster);
            // If no thread can be created, the other node's connection is closed.
            let _ = thread(move || {
                // A node that closed the connection needs no answer.
                let _ = cluster.receive(stream);
            });
        }
    })
    .map(drop)
}

/// Reads one line; the end of the file is an error.
pub(super) fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    match reader.read_line(&mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line),
    }
}

impl Cluster {
    /// The first line of every connection: nodes that send different ones cannot work together.
    fn greeting(&self) -> String {
        let encrypted = self.transport.as_ref().is_some_and(|transport| transport.encrypted);
        let kind = if encrypted { "encrypted" } else { "plain" };
        format!("standin-transport {kind} {}\n", self.name)
    }

    fn receive(self: &Arc<Self>, stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(self.fault_detection))?;
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(&stream);
        let greeting = read_line(&mut reader)?;
        if greeting != self.greeting() {
            print_error(&format!(
                "closed a transport connection: it began with [{}] instead of [{}]",
                greeting.trim_end(),
                self.greeting().trim_end()
            ));
            return Ok(());
        }
        let message: Message = serde_json::from_str(&read_line(&mut reader)?)?;
        if let Message::Follow { term, leader } = message {
            return self.follow(term, leader, &stream, &mut reader);
        }
        let answer = self.answer(message);
        say_line(&stream, &answer)
    }

    fn answer(self: &Arc<Self>, message: Message) -> Result<Value, Failure> {
        match message {
            Message::Hello => value(self.hello()),
            Message::Vote { term, last } => value(self.vote(term, last)?),
            Message::Join { node, term } => value(self.admit(node, term)?),
            Message::Accept { leader, state } => value(self.accept(&leader, *state)?),
            Message::Commit { term, version } => value(self.commit(term, version)?),
            Message::Command(command) => self.command_here(command),
            Message::Write { index, shard, id, source } => {
                value(self.write_here(&index, shard, &id, source)?)
            }
            Message::Replicate { index, shard, document } => {
                value(self.replicate(&index, &shard, document)?)
            }
            Message::Read { shard, id } => value(self.read_here(&shard, &id)?),
            Message::List { shard, most } => value(self.list_here(&shard, most)?),
            Message::Dump { index, shard } => value(self.dump(&index, &shard)?),
            Message::Recover { index, shard, primary } => {
                value(self.recover(&index, &shard, &primary)?)
            }
            Message::Sizes => value(self.sizes_here()?),
            // This message keeps its connection: see `publish.rs`.
            Message::Follow { .. } => Err(Failure::no_master()),
        }
    }

    /// Opens a connection to a node and sends `message`.
    pub(super) fn connect(
        &self,
        address: &str,
        message: &Message,
        limit: Duration,
    ) -> io::Result<TcpStream> {
        let mut failed = io::Error::other("it has no address");
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT.min(limit)) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(limit))?;
                    stream.set_write_timeout(Some(limit))?;
                    stream.set_nodelay(true)?;
                    let line = serde_json::to_string(message)?;
                    (&stream).write_all(format!("{}{line}\n", self.greeting()).as_bytes())?;
                    return Ok(stream);
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Asks the node at `address`.
    pub(super) fn ask<T: DeserializeOwned>(
        &self,
        address: &str,
        message: &Message,
        limit: Duration,
    ) -> Result<T, Failure> {
        let exchange = || {
            let stream = self.connect(address, message, limit)?;
            let line = read_line(&mut BufReader::new(&stream))?;
            io::Result::Ok(serde_json::from_str::<Result<Value, Failure>>(&line)?)
        };
        let answer = exchange().map_err(|error| Failure::not_connected(address, &error))??;
        serde_json::from_value(answer).map_err(|error| Failure::not_connected(address, &error))
    }

    /// Asks a member, which may be this node itself.
    pub(super) fn ask_member<T: DeserializeOwned>(
        self: &Arc<Self>,
        member: &NodeInfo,
        message: Message,
        limit: Duration,
    ) -> Result<T, Failure> {
        if member.id != self.me.id {
            return self.ask(&member.transport, &message, limit);
        }
        let answer = self.answer(message)?;
        serde_json::from_value(answer).map_err(|error| Failure::not_connected(&member.name, &error))
    }
}

/// Sends an answer.
pub(super) fn say_line(mut stream: &TcpStream, answer: &Result<Value, Failure>) -> io::Result<()> {
    let mut line = serde_json::to_string(answer)?;
    line.push('\n');
    stream.write_all(line.as_bytes())
}

fn value(answer: impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(answer)
        .map_err(|error| Failure::new(500, "serialization_exception", error.to_string()))
}

/// Why a request failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// The status of the HTTP answer.
    pub(crate) status: u16,
    /// `…_exception`.
    pub(crate) kind: String,
    pub(crate) reason: Option<String>,
    /// The index it is about, if it is about one.
    pub(crate) index: Option<String>,
}

impl Failure {
    /// A failure of this kind.
    pub(crate) fn new(status: u16, kind: &str, reason: impl Into<String>) -> Self {
        Self { status, kind: kind.to_owned(), reason: Some(reason.into()), index: None }
    }

    /// The index does not exist.
    pub(crate) fn no_such_index(name: &str) -> Self {
        let failure =
            Self::new(404, "index_not_found_exception", format!("no such index [{name}]"));
        Self { index: Some(name.to_owned()), ..failure }
    }

    /// This node has no master. Each distribution has its own error type for that, which REST sets.
    pub(crate) fn no_master() -> Self {
        let kind = "cluster_manager_not_discovered_exception".to_owned();
        Self { status: 503, kind, reason: None, index: None }
    }

    /// The other node could not be reached, or did not answer.
    pub(crate) fn not_connected(node: &str, error: &impl ToString) -> Self {
        let reason = format!("[{node}] Node not connected: {}", error.to_string());
        Self::new(500, "node_not_connected_exception", reason)
    }

    /// The files on disk cannot be used.
    pub(crate) fn disk(error: &std::io::Error) -> Self {
        Self::new(500, "i_o_exception", error.to_string())
    }

    /// The body of the answer.
    pub(crate) fn body(&self) -> Value {
        let mut cause = json!({"type": self.kind, "reason": self.reason});
        if let Some(index) = &self.index {
            cause["index"] = json!(index);
            cause["resource.id"] = json!(index);
            cause["resource.type"] = json!("index_or_alias");
            cause["index_uuid"] = json!("_na_");
        }
        let mut error = cause.clone();
        error["root_cause"] = json!([cause]);
        json!({"error": error, "status": self.status})
    }
}
