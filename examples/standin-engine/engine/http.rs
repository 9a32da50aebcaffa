//! The smallest HTTP/1.1 server that curl and a readiness probe are content with: one request per
//! connection, one thread per connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// No head and no document here is longer.
const MAX_BYTES: u64 = 64 * 1024;
/// A client that is silent for longer has gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was asked, without its headers and query.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

/// What is answered, always JSON.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
}

/// Answers whatever arrives, in the background, for as long as the process lives.
pub(super) fn serve(
    listener: TcpListener,
    answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) {
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || {
                // A client that broke the connection off needs no answer.
                let _ = exchange(stream, answer.as_ref());
            });
        }
    });
}

fn exchange(stream: TcpStream, answer: &dyn Fn(&Request) -> Answer) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let answer = match read_request(&mut BufReader::new((&stream).take(MAX_BYTES))) {
        Ok(request) => answer(&request),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Answer { status: 400, body: json!({"error": error.to_string(), "status": 400}) }
        }
        Err(error) => return Err(error),
    };
    let body = format!("{}\n", answer.body);
    write!(
        &stream,
        "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        answer.status,
        reason(answer.status),
        body.len(),
    )
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Request> {
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(bad("the request line is not METHOD TARGET VERSION"));
    };
    let (method, target) = (method.to_owned(), target.to_owned());
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(|_| bad("Content-Length is not a number"))?;
        }
    }
    if length as u64 > MAX_BYTES {
        return Err(bad("the document is too large for a stand-in"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let path = target.split('?').next().unwrap_or_default().to_owned();
    Ok(Request { method, path, body })
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        404 => "Not Found",
        405 => "Method Not Allowed",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Bad Request",
    }
}
