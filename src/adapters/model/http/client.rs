//! One endpoint: its address, its secrets and the client that reaches it.

use std::error::Error as StdError;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{
    ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use reqwest::redirect::Policy;
use reqwest::{Client, Proxy, Response, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::Instant;

use super::failure::from_status;
use super::redact::Redactor;
use crate::ports::model::ModelError;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::pointer_token;
use crate::protocol::model::{Connection, check_header_value};

/// Most bytes of an error body that are read.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;
/// Most redirects that are followed within one origin.
const MAX_REDIRECTS: usize = 3;
/// How long idle connections are kept.
const IDLE_CONNECTION: Duration = Duration::from_secs(60);
/// Keys are masked in errors from this length on.
const MIN_KEY_BYTES: usize = 4;
/// Other values that may be secret are masked from this length on: versions and switches stay readable.
const MIN_VALUE_BYTES: usize = 8;

/// What of a provider's configuration concerns HTTP.
pub(crate) struct EndpointConfig<'a> {
    pub(crate) connection: Connection<'a>,
    /// What is added to the path of the base address.
    pub(crate) path: &'a str,
    /// What is added to its query.
    pub(crate) query: Option<(&'a str, &'a str)>,
    /// A header that the provider itself sets.
    pub(crate) header: Option<(&'static str, &'a str)>,
}

/// An endpoint that takes POST requests. The client is made with the first request and shared from then on; its
/// tasks live on the tokio runtime that polls the call.
pub(crate) struct Endpoint {
    url: Url,
    headers: HeaderMap,
    roots: Option<Arc<RootCertStore>>,
    proxy: Option<String>,
    connect_timeout: Duration,
    first_byte_timeout: Duration,
    between_bytes_timeout: Duration,
    redactor: Redactor,
    client: OnceLock<Client>,
}

/// When a call must be over. Moves on while the listener holds the call back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Instant,
    whole: Duration,
}

impl Deadline {
    pub(crate) fn after(whole: Duration) -> Self {
        Deadline {
            at: Instant::now() + whole,
            whole,
        }
    }

    /// Awaits `wait` without counting its time.
    pub(crate) async fn excluding(&mut self, wait: impl Future<Output = ()>) {
        let begun = Instant::now();
        wait.await;
        self.at += begun.elapsed();
    }

    /// The earlier of this and `limit` from now, and whether it is this one.
    fn or_within(&self, limit: Duration) -> (Instant, bool) {
        let limit = Instant::now() + limit;
        (limit.min(self.at), self.at < limit)
    }

    fn missed(&self) -> Error {
        timeout(format!(
            "the call took longer than {} ms",
            self.whole.as_millis()
        ))
    }
}

/// Why no more of a body can be read.
pub(crate) enum ReadFault {
    /// The deadline.
    Timeout(Error),
    /// Too long a silence.
    Silence(Error),
    /// The connection broke; what lay behind it.
    Broken(Vec<String>),
}

/// An answer with status 200, whose body is read piece by piece. Dropping it before its end closes the connection.
pub(crate) struct Answer {
    response: Response,
    silence: Duration,
}

impl Answer {
    /// The media type, in lower case and without parameters.
    pub(crate) fn media_type(&self) -> Option<String> {
        let value = self.response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
        let kind = value.split(';').next().unwrap_or_default();
        Some(kind.trim().to_ascii_lowercase())
    }

    /// How the body is coded, if it is: nothing of that kind is asked for.
    pub(crate) fn coding(&self) -> Option<&str> {
        let value = self.response.headers().get(CONTENT_ENCODING)?;
        let coding = value.to_str().unwrap_or("unknown").trim();
        (!coding.is_empty() && !coding.eq_ignore_ascii_case("identity")).then_some(coding)
    }

    /// The next piece of the body, `None` at its end.
    pub(crate) async fn next(
        &mut self,
        deadline: &Deadline,
    ) -> Result<Option<impl AsRef<[u8]> + use<>>, ReadFault> {
        let (until, is_deadline) = deadline.or_within(self.silence);
        match tokio::time::timeout_at(until, self.response.chunk()).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(error)) => Err(ReadFault::Broken(causes(&error))),
            Err(_) if is_deadline => Err(ReadFault::Timeout(deadline.missed())),
            Err(_) => Err(ReadFault::Silence(timeout(format!(
                "the endpoint fell silent for {} ms in the middle of its answer",
                self.silence.as_millis()
            )))),
        }
    }

    /// Shortens the longest silence.
    pub(crate) fn wait_at_most(&mut self, silence: Duration) {
        self.silence = self.silence.min(silence);
    }

    /// Reads to the end of a body that should have nothing left, so that the connection can be used again.
    pub(crate) async fn drain(mut self, patience: Duration) {
        let rest = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        // A connection that is not done by then is closed, which is no fault of the reply.
        let _ = tokio::time::timeout(patience, rest).await;
    }
}

impl Endpoint {
    /// Resolves secrets through `lookup` and reads the CA file. Nothing is sent.
    ///
    /// # Errors
    /// [`ErrorCode::MissingMember`] for an environment variable that is not set, [`ErrorCode::OutOfRange`] for an
    /// address or value that cannot be used, [`ErrorCode::AssemblyInvalid`] for a CA file that cannot be.
    pub(crate) fn new(
        config: &EndpointConfig<'_>,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let connection = &config.connection;
        let mut redactor = Redactor::default();
        let url = address(config, &mut redactor)?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("fawn/", env!("CARGO_PKG_VERSION"))),
        );
        if let Some((name, value)) = config.header {
            headers.insert(HeaderName::from_static(name), header_value(value, "")?);
        }
        if let Some(key) = connection.api_key {
            let key = key.resolve("/api_key", lookup)?;
            redactor.add(&key, MIN_KEY_BYTES);
            let name = HeaderName::from_static(connection.auth.header());
            let mut value = header_value(&connection.auth.value(&key), "/api_key")?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        for (name, value) in connection.headers {
            let path = format!("/headers/{}", pointer_token(name));
            let value = value.resolve(&path, lookup)?;
            redactor.add(&value, MIN_VALUE_BYTES);
            // "Bearer KEY": the key alone is as secret.
            value
                .split_ascii_whitespace()
                .for_each(|word| redactor.add(word, MIN_VALUE_BYTES));
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
                Error::at(
                    ErrorCode::OutOfRange,
                    path.as_str(),
                    "this is no name of an HTTP header",
                )
            })?;
            let mut value = header_value(&value, &path)?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let proxy = match connection.proxy {
            Some(proxy) => Some(proxy_address(
                proxy.resolve("/proxy", lookup)?,
                &mut redactor,
            )?),
            None => None,
        };
        let ca_file = connection.tls.and_then(|tls| tls.ca_file.as_deref());
        Ok(Endpoint {
            url,
            headers,
            roots: ca_file.map(read_roots).transpose()?.map(Arc::new),
            proxy,
            connect_timeout: Duration::from_millis(connection.connect_timeout_ms),
            first_byte_timeout: Duration::from_millis(connection.first_byte_timeout_ms),
            between_bytes_timeout: Duration::from_millis(connection.between_bytes_timeout_ms),
            redactor,
            client: OnceLock::new(),
        })
    }

    /// What masks this endpoint's secrets.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Sends `body` and waits for the head of the answer.
    ///
    /// # Errors
    /// Whatever keeps the endpoint from answering with status 200.
    pub(crate) async fn post(
        &self,
        body: Vec<u8>,
        accept: &'static str,
        deadline: &Deadline,
    ) -> Result<Answer, ModelError> {
        let send = self
            .client()?
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(ACCEPT, accept)
            .body(body)
            .send();
        let (until, is_deadline) = deadline.or_within(self.first_byte_timeout);
        let response = match tokio::time::timeout_at(until, send).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.send_failure(&error).into()),
            Err(_) if is_deadline => return Err(deadline.missed().into()),
            Err(_) => {
                return Err(timeout(format!(
                    "{} did not begin to answer within {} ms",
                    self.origin(),
                    self.first_byte_timeout.as_millis()
                ))
                .into());
            }
        };
        let status = response.status().as_u16();
        let answer = Answer {
            response,
            silence: self.between_bytes_timeout,
        };
        if status == 200 {
            return Ok(answer);
        }
        Err(self.status_failure(status, answer, deadline).await)
    }

    async fn status_failure(
        &self,
        status: u16,
        mut answer: Answer,
        deadline: &Deadline,
    ) -> ModelError {
        let mut body = Vec::new();
        // Whatever stops the reading, the status is known already.
        while let Ok(Some(bytes)) = answer.next(deadline).await {
            body.extend_from_slice(bytes.as_ref());
            if body.len() >= MAX_ERROR_BODY_BYTES {
                body.truncate(MAX_ERROR_BODY_BYTES);
                break;
            }
        }
        let mut error = from_status(status, answer.response.headers(), &body, &self.redactor);
        if (300..400).contains(&status) {
            let location = answer.response.headers().get("location");
            let target = location
                .and_then(|location| location.to_str().ok())
                .and_then(|location| self.url.join(location).ok());
            if let Some(target) = target {
                let cause = format!("it points to {}", target.origin().ascii_serialization());
                error.error.cause.push(self.redactor.clean(&cause));
            }
        }
        error
    }

    /// Scheme, host and port.
    fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    fn send_failure(&self, error: &reqwest::Error) -> Error {
        let origin = self.origin();
        let causes: Vec<String> = causes(error)
            .iter()
            .map(|cause| self.redactor.clean(cause))
            .collect();
        let mut failure = if error.is_timeout() {
            timeout(format!(
                "no connection to {origin} within {} ms",
                self.connect_timeout.as_millis()
            ))
        } else if find::<rustls::Error>(error)
            .is_some_and(|tls| matches!(tls, rustls::Error::InvalidCertificate(_)))
        {
            Error::new(
                ErrorCode::ModelConnection,
                format!("the certificate of {origin} is not trusted"),
            )
        } else if find::<hyper::Error>(error).is_some_and(hyper::Error::is_parse) {
            Error::new(
                ErrorCode::ModelProtocol,
                format!("{origin} does not answer in HTTP"),
            )
        } else if error.is_connect() {
            Error::new(
                ErrorCode::ModelConnection,
                format!("no connection to {origin}"),
            )
            .retryable()
        } else {
            Error::new(
                ErrorCode::ModelConnection,
                format!("the connection to {origin} broke before it answered"),
            )
            .retryable()
        };
        failure.cause = causes;
        failure
    }

    fn client(&self) -> Result<&Client, Error> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = self.build_client()?;
        // Two first calls at once may both build one; the first to finish is kept.
        Ok(self.client.get_or_init(|| client))
    }

    fn build_client(&self) -> Result<Client, Error> {
        let broken = |error: &dyn std::fmt::Display| {
            Error::new(
                ErrorCode::ModelConnection,
                "the HTTP client cannot be set up",
            )
            .caused_by(self.redactor.clean(&error.to_string()))
        };
        let mut builder = Client::builder()
            .tls_backend_preconfigured(self.tls()?)
            .redirect(within_origin())
            .retry(reqwest::retry::never())
            .connect_timeout(self.connect_timeout)
            .pool_idle_timeout(IDLE_CONNECTION)
            .referer(false)
            // The environment belongs to the host: its proxies are used only when they are named.
            .no_proxy();
        if let Some(proxy) = &self.proxy {
            builder = builder.proxy(Proxy::all(proxy).map_err(|error| broken(&error))?);
        }
        builder.build().map_err(|error| broken(&error))
    }

    /// TLS with a provider of our own, so that nothing is installed for the whole process.
    fn tls(&self) -> Result<ClientConfig, Error> {
        let broken = |error: &dyn std::fmt::Display| {
            Error::new(ErrorCode::ModelConnection, "TLS cannot be set up").caused_by(error)
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| broken(&error))?;
        let mut config = if let Some(roots) = &self.roots {
            builder
                .with_root_certificates(Arc::clone(roots))
                .with_no_client_auth()
        } else if self.url.scheme() == "https" {
            let verifier = rustls_platform_verifier::Verifier::new(provider).map_err(|error| {
                Error::new(
                    ErrorCode::ModelConnection,
                    "the system has no CA certificates; name a file in tls.ca_file",
                )
                .caused_by(error)
            })?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
                .with_no_client_auth()
        } else {
            // Plain http: the certificates of the system need not be read.
            builder
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth()
        };
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Follows a redirect only when it keeps method, body and origin: a key must not travel to another host.
fn within_origin() -> Policy {
    Policy::custom(|attempt| {
        let keeps_method = matches!(attempt.status().as_u16(), 307 | 308);
        let same_origin = attempt
            .previous()
            .last()
            .is_some_and(|from| from.origin() == attempt.url().origin());
        if keeps_method && same_origin && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// The address that is asked. Values of its query may be keys.
fn address(config: &EndpointConfig<'_>, redactor: &mut Redactor) -> Result<Url, Error> {
    let base = config.connection.base_url;
    base.check("/base_url")?;
    let invalid = || Error::at(ErrorCode::OutOfRange, "/base_url", "this is no address");
    let mut url = Url::parse(base.expose()).map_err(|_| invalid())?;
    if !url.has_host() {
        return Err(invalid());
    }
    let path = format!("{}{}", url.path().trim_end_matches('/'), config.path);
    url.set_path(&path);
    for (_, value) in url.query_pairs() {
        redactor.add(&value, MIN_VALUE_BYTES);
    }
    if let Some((name, value)) = config.query {
        url.query_pairs_mut().append_pair(name, value);
    }
    Ok(url)
}

fn proxy_address(address: String, redactor: &mut Redactor) -> Result<String, Error> {
    redactor.add(&address, MIN_VALUE_BYTES);
    let invalid = || {
        Error::at(
            ErrorCode::OutOfRange,
            "/proxy",
            "a proxy is named as http://host:port",
        )
    };
    let url = Url::parse(&address).map_err(|_| invalid())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(invalid());
    }
    if let Some(password) = url.password() {
        redactor.add(password, MIN_KEY_BYTES);
    }
    Ok(address)
}

fn header_value(text: &str, path: &str) -> Result<HeaderValue, Error> {
    check_header_value(text, path)?;
    HeaderValue::from_str(text).map_err(|_| {
        Error::at(
            ErrorCode::OutOfRange,
            path,
            "a header may hold visible ASCII characters only",
        )
    })
}

/// Reads a file of CA certificates.
fn read_roots(file: &str) -> Result<RootCertStore, Error> {
    let invalid = |what: String| {
        Error::at(
            ErrorCode::AssemblyInvalid,
            "/tls/ca_file",
            format!("the CA file {file:?} {what}"),
        )
    };
    let pem = std::fs::read(file).map_err(|error| invalid(format!("cannot be read: {error}")))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate =
            certificate.map_err(|error| invalid(format!("is not in PEM form: {error}")))?;
        roots
            .add(certificate)
            .map_err(|error| invalid(format!("holds what is no CA certificate: {error}")))?;
    }
    if roots.is_empty() {
        return Err(invalid("holds no certificate".to_owned()));
    }
    Ok(roots)
}

fn timeout(message: String) -> Error {
    Error::new(ErrorCode::ModelTimeout, message).retryable()
}

/// What lies behind an HTTP failure, outermost first and without the address, whose query may hold a key.
fn causes(error: &reqwest::Error) -> Vec<String> {
    let mut causes: Vec<String> = Vec::new();
    let mut source = error.source();
    while let Some(error) = source {
        let text = error.to_string();
        if causes.last() != Some(&text) {
            causes.push(text);
        }
        source = error.source();
    }
    causes
}

/// The first error of type `T` behind `error`, also inside of I/O errors, which hide what they wrap.
fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        let wrapped = error
            .downcast_ref::<std::io::Error>()
            .and_then(|error| error.get_ref());
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}
