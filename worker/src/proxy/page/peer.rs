//! The user at the other end of a connection from this machine: a page's port is open to every user, but a browser is
//! one of this process's own.

use std::fs;
use std::net::SocketAddr;

use rustix::process::geteuid;

/// The system's list of connections (proc(5)).
const CONNECTIONS: &str = "/proc/net/tcp";

/// Whether a connection from `peer` to `own` is of this process's user.
pub(super) fn is_of_this_user(peer: SocketAddr, own: SocketAddr) -> bool {
    let connections = fs::read_to_string(CONNECTIONS).unwrap_or_default();
    user(&connections, peer, own) == Some(geteuid().as_raw())
}

/// Returns the user of the socket at `local` that is connected to `remote`.
fn user(connections: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let (local, remote) = (written(local)?, written(remote)?);
    connections.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_it = fields.get(1..3) == Some(&[&*local, &*remote]);
        is_it.then(|| fields.get(7)?.parse().ok())?
    })
}

/// Returns an address as the system writes it.
fn written(address: SocketAddr) -> Option<String> {
    let SocketAddr::V4(address) = address else { return None };
    Some(format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port()))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_of_this_process_is_of_its_user() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, own) = (stream.local_addr().unwrap(), listener.local_addr().unwrap());
        assert!(is_of_this_user(peer, own));
        assert!(!is_of_this_user(own, own), "there is no such connection");
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn the_user_of_a_connection_is_found_by_both_of_its_ends() {
        let connections = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n   \
            0: 0100007F:1F90 0100007F:0050 01 00000000:00000000 00:00000000 00000000  1000        0 1 1\n   \
            1: 0100007F:0050 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 2 1\n";
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(user(connections, address(8080), address(80)), Some(1000));
        assert_eq!(user(connections, address(80), address(8080)), Some(0));
        assert_eq!(user(connections, address(80), address(81)), None);
    }
}
