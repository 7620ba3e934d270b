//! An address of this machine that a browser may not reach by itself.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

/// An address that nobody else knows. What arrives stays there until it is looked for.
pub(super) struct Forbidden {
    connections: TcpListener,
    packets: UdpSocket,
    address: SocketAddr,
}

impl Forbidden {
    /// Listens for connections and packets on one port.
    pub(super) fn listen() -> io::Result<Self> {
        let connections = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        connections.set_nonblocking(true)?;
        let address = connections.local_addr()?;
        let packets = UdpSocket::bind(address)?;
        packets.set_nonblocking(true)?;
        Ok(Self { connections, packets, address })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether a connection or a packet has arrived since the last look.
    pub(super) fn is_reached(&self) -> bool {
        self.connections.accept().is_ok() || self.packets.recv(&mut [0]).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn a_connection_and_a_packet_are_noticed() {
        let forbidden = Forbidden::listen().unwrap();
        assert!(!forbidden.is_reached());
        drop(TcpStream::connect(forbidden.address()).unwrap());
        assert_eq!([forbidden.is_reached(), forbidden.is_reached()], [true, false]);
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.send_to(b"stun", forbidden.address()).unwrap();
        assert!(forbidden.is_reached());
    }
}
