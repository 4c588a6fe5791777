//! An HTTP/1.1 server on loopback that does exactly what a test tells it, byte by byte, and remembers what it was
//! asked. A request to a model that no endpoint would take fails the test when the server is dropped.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::request_invariant;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// One thing the server does in answer to a request.
#[derive(Clone, Debug)]
pub enum Step {
    /// Writes these bytes.
    Send(Vec<u8>),
    /// Waits.
    Wait(Duration),
    /// Waits until the peer closes the connection, and notes when it did.
    AwaitClose,
    /// Reads the next request on this connection. Without it the connection is closed after the last step.
    KeepAlive,
}

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Which connection it came on, counted from 0.
    pub connection: usize,
}

impl Recorded {
    /// A header by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

#[derive(Default)]
struct Log {
    requests: Mutex<Vec<Recorded>>,
    closes: Mutex<Vec<Instant>>,
    closed: Condvar,
    connections: AtomicUsize,
    stop: AtomicBool,
    /// Requests that no endpoint would take, and why.
    refusals: Mutex<Vec<String>>,
}

/// A running server; stops when dropped.
pub struct Server {
    addr: SocketAddr,
    scheme: &'static str,
    log: Arc<Log>,
}

impl Server {
    /// Answers the n-th request with the n-th exchange; the last one answers all that follow.
    pub fn start(exchanges: Vec<Vec<Step>>) -> Server {
        Server::listen(exchanges, None)
    }

    /// The same over TLS.
    pub fn start_tls(exchanges: Vec<Vec<Step>>, tls: &Tls) -> Server {
        Server::listen(exchanges, Some(Arc::clone(&tls.config)))
    }

    fn listen(exchanges: Vec<Vec<Step>>, tls: Option<Arc<ServerConfig>>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let log = Arc::new(Log::default());
        let server = Server {
            addr,
            scheme: if tls.is_some() { "https" } else { "http" },
            log: Arc::clone(&log),
        };
        let exchanges = Arc::new(exchanges);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if log.stop.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { return };
                stream.set_nodelay(true).unwrap();
                let (log, exchanges, tls) = (Arc::clone(&log), Arc::clone(&exchanges), tls.clone());
                std::thread::spawn(move || {
                    let connection = log.connections.fetch_add(1, Ordering::SeqCst);
                    // A connection that fails is the peer's affair; tests look at what the peer says.
                    let _ = match tls {
                        None => serve(stream, connection, &log, &exchanges),
                        Some(config) => {
                            let tls = ServerConnection::new(config).unwrap();
                            serve(StreamOwned::new(tls, stream), connection, &log, &exchanges)
                        }
                    };
                });
            }
        });
        server
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:PORT` and `path`; https by name, since the certificate is for a name.
    pub fn url(&self, path: &str) -> String {
        match self.scheme {
            "https" => format!("https://localhost:{}{path}", self.addr.port()),
            scheme => format!("{scheme}://{}{path}", self.addr),
        }
    }

    pub fn requests(&self) -> Vec<Recorded> {
        self.log.requests.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.log.connections.load(Ordering::SeqCst)
    }

    /// When a peer closed its connection while the server awaited it; `None` if none did within `patience`.
    pub fn wait_for_close(&self, patience: Duration) -> Option<Instant> {
        let closes = self.log.closes.lock().unwrap();
        let (closes, _) = self
            .log
            .closed
            .wait_timeout_while(closes, patience, |closes| closes.is_empty())
            .unwrap();
        closes.first().copied()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.log.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.addr);
        let refusals = self.log.refusals.lock().unwrap();
        if !std::thread::panicking() {
            assert!(refusals.is_empty(), "no endpoint takes this: {refusals:#?}");
        }
    }
}

fn serve<S: Read + Write>(
    stream: S,
    connection: usize,
    log: &Log,
    exchanges: &[Vec<Step>],
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream, connection)? {
        let refusals = refusals(&request);
        log.refusals.lock().unwrap().extend(refusals);
        let number = {
            let mut requests = log.requests.lock().unwrap();
            requests.push(request);
            requests.len() - 1
        };
        let Some(steps) = exchanges.get(number).or(exchanges.last()) else {
            return Ok(());
        };
        let mut keep = false;
        for step in steps {
            match step {
                Step::Send(bytes) => {
                    stream.get_mut().write_all(bytes)?;
                    stream.get_mut().flush()?;
                }
                Step::Wait(time) => std::thread::sleep(*time),
                Step::AwaitClose => {
                    let mut rest = [0; 1024];
                    while matches!(stream.read(&mut rest), Ok(read) if read > 0) {}
                    log.closes.lock().unwrap().push(Instant::now());
                    log.closed.notify_all();
                    return Ok(());
                }
                Step::KeepAlive => keep = true,
            }
        }
        if !keep {
            return Ok(());
        }
    }
    Ok(())
}

/// Why an endpoint would not take a request to a model; none for other requests.
fn refusals(request: &Recorded) -> Vec<String> {
    let Ok(body) = serde_json::from_slice(&request.body) else {
        return Vec::new();
    };
    if request.path.ends_with("/chat/completions") {
        request_invariant::openai(&body)
    } else if request.path.ends_with("/messages") {
        request_invariant::anthropic(&body)
    } else {
        Vec::new()
    }
}

/// Reads the next request of a connection; `None` when the client has closed it, before or in its head.
pub fn read_request(
    stream: &mut impl BufRead,
    connection: usize,
) -> std::io::Result<Option<Recorded>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        if !line.ends_with('\n') {
            return Ok(None); // the client went away in the middle of it
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap();
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Recorded {
        method,
        path,
        headers,
        body: Vec::new(),
        connection,
    };
    let length = request
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    request.body = vec![0; length];
    stream.read_exact(&mut request.body)?;
    Ok(Some(request))
}

/// An answer with a length, after which the connection may be used again.
pub fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Vec<Step> {
    let mut head = format!(
        "HTTP/1.1 {status} Said\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    vec![
        Step::Send(format!("{head}\r\n{body}").into_bytes()),
        Step::KeepAlive,
    ]
}

pub fn json_answer(status: u16, body: &str) -> Vec<Step> {
    answer(status, &[("content-type", "application/json")], body)
}

/// The head of a stream that ends with the connection.
pub fn stream_head() -> Step {
    send(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n",
    )
}

/// A whole stream in chunked coding, after which the connection may be used again.
pub fn chunked_stream(pieces: &[&str]) -> Vec<Step> {
    let mut steps = vec![send(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    )];
    for piece in pieces {
        steps.push(send(&format!("{:x}\r\n{piece}\r\n", piece.len())));
    }
    steps.push(send("0\r\n\r\n"));
    steps.push(Step::KeepAlive);
    steps
}

pub fn send(text: &str) -> Step {
    Step::Send(text.as_bytes().to_vec())
}

pub fn wait_ms(ms: u64) -> Step {
    Step::Wait(Duration::from_millis(ms))
}

/// One `data` event with a text delta.
pub fn text_event(text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    format!(
        "data: {{\"id\":\"c1\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}}}}]}}\n\n"
    )
}

/// The event that ends a reply, without `[DONE]`.
pub fn stop_event() -> String {
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n".to_owned()
}

pub const DONE: &str = "data: [DONE]\n\n";

/// A certificate authority of this test, and a server certificate for `localhost` that it signed.
pub struct Tls {
    config: Arc<ServerConfig>,
    /// The certificate of the authority, in PEM form.
    pub ca_file: PathBuf,
}

impl Tls {
    /// Makes both; `folder` takes the file.
    pub fn new(folder: &std::path::Path) -> Tls {
        use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_certificate = ca.self_signed(&ca_key).unwrap();
        let ca_file = folder.join("ca.pem");
        std::fs::write(&ca_file, ca_certificate.pem()).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["localhost".to_owned()])
            .unwrap()
            .signed_by(&key, &Issuer::from_params(&ca, &ca_key))
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Tls {
            config: Arc::new(config),
            ca_file,
        }
    }
}
