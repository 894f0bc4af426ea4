//! A user's name and password.

use std::fmt;

/// A user and password. Debug output omits the password, so that it cannot reach a log.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Credentials {
    /// User name.
    pub user: String,
    /// Password in clear text; empty for users without one.
    pub password: String,
}

impl Credentials {
    /// Credentials of a user with a password.
    #[must_use]
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Credentials {
            user: user.into(),
            password: password.into(),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let password = if self.password.is_empty() {
            "none"
        } else {
            "hidden"
        };
        formatter
            .debug_struct("Credentials")
            .field("user", &self.user)
            .field("password", &format_args!("{password}"))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_does_not_reach_debug_output() {
        let text = format!("{:?}", Credentials::new("anna", "s3cret"));
        assert!(
            text.contains("anna") && text.contains("hidden") && !text.contains("s3cret"),
            "{text}"
        );
    }
}
