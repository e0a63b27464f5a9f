//! One connection to a server, for a thread that waits.

use super::{Commands, RedisAddress, RedisError};
use ::redis::{Client, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, RedisResult, TlsCertificates, Value};
use std::time::Duration;

/// An open connection.
pub struct Connection {
    inner: ::redis::Connection,
    place: String,
    user: String,
    seconds: u64,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("place", &self.place).field("user", &self.user).finish_non_exhaustive()
    }
}

impl Connection {
    /// Opens a connection; `name` is how the server's list of clients calls it, if the user may have a name.
    ///
    /// # Errors
    /// When nobody answers, the server does not let the user in, or TLS is not as asked for.
    pub fn open(address: &RedisAddress, name: &str) -> Result<Self, RedisError> {
        let place = address.place();
        let user = address.user.clone().unwrap_or_else(|| "default".to_owned());
        let client = client(address)?;
        let inner = client
            .get_connection_with_timeout(address.connect_timeout)
            .map_err(|error| RedisError::of_connecting(&place, &user, address.tls, error))?;
        let mut connection = Self { inner, place, user, seconds: address.connect_timeout.as_secs() };
        // The two sides may greet each other with the first words only.
        connection.set_timeout(Some(address.connect_timeout))?;
        connection.greet(name).map_err(|error| match error {
            RedisError::Timeout { place, .. } => {
                let source = "it takes longer than `connectTimeout`; does it speak TLS as `url` says?".into();
                RedisError::Unreachable { place, source }
            }
            other => other,
        })?;
        connection.set_timeout(address.query_timeout)?;
        connection.seconds = address.query_timeout.unwrap_or_default().as_secs();
        Ok(connection)
    }

    /// The first words; the answer shows whether the server lets the user in.
    fn greet(&mut self, name: &str) -> Result<(), RedisError> {
        // Who may not do this, or has no word for it, has no name.
        self.ask_all(&Commands::one(&[b"CLIENT", b"SETNAME", name.replace(' ', "-").as_bytes()]))?;
        match self.ask(&[b"PING"]) {
            Ok(_) | Err(RedisError::Forbidden { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn set_timeout(&self, timeout: Option<Duration>) -> Result<(), RedisError> {
        let set = self.inner.set_read_timeout(timeout).and_then(|()| self.inner.set_write_timeout(timeout));
        set.map_err(|error| RedisError::of_talking(&self.place, self.seconds, error))
    }

    /// Where it leads.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Asks one thing.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn ask(&mut self, arguments: &[&[u8]]) -> Result<Value, RedisError> {
        let answers = self.ask_all(&Commands::one(arguments))?;
        let answer = answers.into_iter().next().unwrap_or(Value::Nil);
        self.checked(answer)
    }

    /// Asks many things at once. What the server refuses is among the answers: [`checked`](Self::checked) makes an error of
    /// it.
    ///
    /// # Errors
    /// What the network says. Then nobody knows what was done.
    pub fn ask_all(&mut self, commands: &Commands) -> Result<Vec<Value>, RedisError> {
        let told = |error| RedisError::of_talking(&self.place, self.seconds, error);
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        self.inner.send_packed_command(commands.bytes()).map_err(told)?;
        let mut answers = Vec::with_capacity(commands.len());
        while answers.len() < commands.len() {
            answers.push(self.inner.recv_response().map_err(told)?);
        }
        Ok(answers)
    }

    /// An answer, or the error that it is.
    ///
    /// # Errors
    /// When the server refused.
    pub fn checked(&self, answer: Value) -> Result<Value, RedisError> {
        match answer {
            Value::ServerError(error) => {
                Err(RedisError::of_server(&self.place, &self.user, error.code(), error.details().unwrap_or_default()))
            }
            answer => Ok(answer),
        }
    }

    /// An error about an answer that has another shape than Redis gives it.
    pub fn strange(&self, reason: &str) -> RedisError {
        RedisError::Foreign { place: self.place.clone(), reason: reason.to_owned() }
    }
}

fn client(address: &RedisAddress) -> Result<Client, RedisError> {
    let place = address.place();
    let mut login = RedisConnectionInfo::default().set_db(address.db).set_skip_set_lib_name();
    if let Some(user) = &address.user {
        // A user that needs no password is let in with any.
        login = login.set_username(user).set_password("");
    }
    if let Some(password) = &address.password {
        login = login.set_password(password.reveal());
    }
    let (host, port) = (address.host.clone(), address.port);
    let made: RedisResult<Client> = if address.tls {
        let roots = address.root_certificates.as_ref().map(std::fs::read).transpose();
        let root_cert = roots.map_err(|source| RedisError::Tls { place: place.clone(), source: Box::new(source) })?;
        let address = ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None };
        let info = address.into_connection_info().map(|info| info.set_redis_settings(login));
        info.and_then(|info| Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert }))
    } else {
        let info = ConnectionAddr::Tcp(host, port).into_connection_info();
        info.and_then(|info| Client::open(info.set_redis_settings(login)))
    };
    made.map_err(|error| match address.tls {
        true => RedisError::Tls { place, source: Box::new(error) },
        false => RedisError::Unreachable { place, source: Box::new(error) },
    })
}
