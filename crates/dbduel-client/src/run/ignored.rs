//! Errors that do not end a run.

use dbduel_driver::sqlstate_code;

/// `CR_SERVER_GONE_ERROR`, `CR_TCP_CONNECTION`, `CR_SERVER_LOST`, `CR_SERVER_LOST_EXTENDED`: the numbers of
/// libmysqlclient for broken connections. Ignoring one of them means to reconnect.
const BROKEN: [u32; 4] = [2006, 2011, 2013, 2055];

/// Errors after which an event is retried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IgnoredErrors {
    /// Every error.
    All,
    /// Errors with these [numbers](dbduel_driver::ServerError::code); the numbers of broken connections (2006, 2011,
    /// 2013, 2055) mean: reconnect.
    Codes(Vec<u32>),
}

impl IgnoredErrors {
    /// Parses a list in the format of `mysql-ignore-errors`: numbers, or `all`.
    ///
    /// # Errors
    /// The word that is neither.
    pub fn read<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut codes = Vec::new();
        for word in words.into_iter().map(str::trim) {
            match word.parse() {
                _ if word == "all" => return Ok(IgnoredErrors::All),
                _ if word.is_empty() => {}
                Ok(code) => codes.push(code),
                Err(_) => return Err(word.to_owned()),
            }
        }
        Ok(IgnoredErrors::Codes(codes))
    }

    /// The errors that sysbench's driver for PostgreSQL ignores: deadlock, duplicate key, serialization failure. Lost
    /// connections are not among them.
    #[must_use]
    pub fn of_postgresql() -> Self {
        IgnoredErrors::Codes(["40P01", "23505", "40001"].map(sqlstate_code).to_vec())
    }

    /// Whether the code is one of them.
    pub fn contains(&self, code: u32) -> bool {
        match self {
            IgnoredErrors::All => true,
            IgnoredErrors::Codes(codes) => codes.contains(&code),
        }
    }

    /// True for the number of a broken connection after which to reconnect.
    pub fn reconnects_after(&self, code: u32) -> bool {
        BROKEN.contains(&code) && self.contains(code)
    }

    /// True when lost connections are reconnected whatever the cause.
    pub(crate) fn reconnects(&self) -> bool {
        BROKEN.iter().any(|code| self.contains(*code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_named_and_not_left_out() {
        let read = |text: &'static str| IgnoredErrors::read(text.split(','));
        assert_eq!(
            read("1213, 1205"),
            Ok(IgnoredErrors::Codes(vec![1213, 1205]))
        );
        assert_eq!(read(""), Ok(IgnoredErrors::Codes(Vec::new())));
        assert_eq!(read("1213,all"), Ok(IgnoredErrors::All));
        assert_eq!(read("1213,deadlock"), Err("deadlock".to_owned()));
        assert_eq!(read("-1"), Err("-1".to_owned()));
    }

    #[test]
    fn connections_are_made_again_only_after_errors_of_connections() {
        let ignored = IgnoredErrors::Codes(vec![1213, 2013]);
        assert!(ignored.reconnects() && ignored.reconnects_after(2013));
        assert!(!ignored.reconnects_after(2006) && !ignored.reconnects_after(1213));
        assert!(!IgnoredErrors::Codes(vec![1213]).reconnects());
        assert!(IgnoredErrors::All.reconnects_after(2055));
        assert!(!IgnoredErrors::of_postgresql().reconnects());
    }
}
