//! Advice on errors of servers, in the options of sysbench's command line.

use std::fmt::Display;

use dbduel_driver::{Dialect, ErrorClass, ServerError, TlsMode};

/// Advice on a login that was refused, to be appended to the error; empty where the server's message is enough.
pub fn on_login(dialect: Dialect, tls: &TlsMode, refusal: &ServerError) -> &'static str {
    match (dialect, tls, refusal.class) {
        (Dialect::MySql, TlsMode::Off, ErrorClass::AccessDenied) => {
            "; the account may also require TLS, see --mysql-ssl"
        }
        (Dialect::MySql, TlsMode::Off, ErrorClass::TlsRequired) => "; give --mysql-ssl=on",
        _ => "",
    }
}

/// Advice on a server's limit of prepared statements; `needed` is the number that all clients together prepare.
pub fn on_prepared_statements(needed: impl Display) -> String {
    format!(
        "all clients together prepare {needed}; raise max_prepared_stmt_count to that, or send statements as text with --db-ps-mode=disable"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_suggested_only_to_those_who_do_without() {
        let advice = |class, tls| {
            let (code, sqlstate) = (1, *b"HY000");
            let message = String::new();
            let refusal = ServerError {
                class,
                code,
                sqlstate,
                message,
            };
            on_login(Dialect::MySql, &tls, &refusal)
        };
        assert!(advice(ErrorClass::AccessDenied, TlsMode::Off).contains("--mysql-ssl"));
        assert!(advice(ErrorClass::TlsRequired, TlsMode::Off).contains("--mysql-ssl=on"));
        assert_eq!(advice(ErrorClass::AccessDenied, TlsMode::Required), "");
        assert_eq!(advice(ErrorClass::Other, TlsMode::Off), "");
    }
}
