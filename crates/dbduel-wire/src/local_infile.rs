//! The content of a file requested by `LOAD DATA LOCAL INFILE`.
//!
//! Opens no file: the caller decides whether and what to send.

use crate::packet;

/// Appends one packet of content and returns the next sequence number. The first one's is in
/// [`crate::reply::LocalInfile`]. Empty content is not written, since it would end the transfer.
pub fn content(out: &mut Vec<u8>, sequence: u8, bytes: &[u8]) -> u8 {
    if bytes.is_empty() {
        return sequence;
    }
    packet::append(out, sequence, |out| out.extend_from_slice(bytes))
}

/// Appends the empty packet that ends the transfer, including one that was refused.
pub fn end(out: &mut Vec<u8>, sequence: u8) {
    packet::append(out, sequence, |_| {});
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capabilities, ReplyParser, RowFormat, Skip, Step};

    #[test]
    fn content_goes_between_the_servers_request_and_its_verdict() {
        let mut parser = ReplyParser::new(Capabilities::default());
        parser.begin(RowFormat::Text);
        let fed = parser.feed(b"\x08\0\0\x01\xfb/etc/ab", &mut Skip).unwrap();
        assert_eq!((fed.consumed, fed.step), (12, Step::LocalInfile));
        let request = parser.local_infile();
        assert_eq!((request.name, request.sequence), (&b"/etc/ab"[..], 2));

        let mut out = Vec::new();
        let sequence = content(&mut out, request.sequence, b"1\n2\n");
        let sequence = content(&mut out, sequence, b"");
        end(&mut out, sequence);
        assert_eq!(out, b"\x04\0\0\x021\n2\n\0\0\0\x03");

        let fed = parser
            .feed(b"\x07\0\0\x04\0\x02\0\x02\0\0\0", &mut Skip)
            .unwrap();
        assert_eq!((fed.consumed, fed.step), (11, Step::Done));
        assert_eq!(parser.outcome().unwrap().affected_rows, 2);
    }
}
