//! A TLS layer over a non-blocking socket.
//!
//! Every call does what is possible now and returns `WouldBlock` when that is nothing. The library allocates for every
//! record, so a load over TLS does too.

use std::io::{self, ErrorKind, Read, Write};

use rustls::ClientConnection;

/// Reads available bytes of the socket into the layer; false when there are none.
pub(super) fn read(tls: &mut ClientConnection, socket: &mut impl Read) -> io::Result<bool> {
    match tls.read_tls(socket) {
        Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
        Err(error) => return Err(error),
    }
    tls.process_new_packets()
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
    Ok(true)
}

/// Reads decrypted bytes; 0 when the server has ended the connection.
pub(super) fn receive(
    tls: &mut ClientConnection,
    socket: &mut impl Read,
    buffer: &mut [u8],
) -> io::Result<usize> {
    loop {
        match tls.reader().read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            outcome => return outcome,
        }
        if !read(tls, socket)? {
            return Err(ErrorKind::WouldBlock.into());
        }
    }
}

/// Encrypts bytes and sends the records to the socket. Returns how many bytes it took: 0 while earlier ones still wait
/// for room in the socket.
pub(super) fn write(
    tls: &mut ClientConnection,
    socket: &mut impl Write,
    bytes: &[u8],
) -> io::Result<usize> {
    flush(tls, socket)?;
    let taken = tls.writer().write(bytes)?;
    match flush(tls, socket) {
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
        _ => Ok(taken),
    }
}

fn flush(tls: &mut ClientConnection, socket: &mut impl Write) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(socket)?;
    }
    Ok(())
}
