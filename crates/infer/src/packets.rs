//! Packets of one connection, for its time–sequence graph.

use cwnd_quantity::{Duration, Time};
use cwnd_tables::Table;

use crate::captures::captures;
use crate::connection::Connection;
use crate::headers::{Host, Segment};
use crate::merge::{Consumer, Error, Input};
use crate::rows::PacketRows;

/// Maximum number of packets kept of a connection; later ones are only counted.
const MAX_PACKETS: u64 = 1 << 21;

/// A connection among those of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    /// Address and port of the client.
    pub client: Host,
    /// Address and port of the server.
    pub server: Host,
    /// Bounds of the capture times of its packets.
    pub times: (Time, Time),
    /// Number of the file that holds its first packet.
    pub file: u32,
}

/// Packets of one connection.
#[derive(Debug)]
pub struct Packets {
    /// Table with a row for each packet.
    pub table: Table,
    /// Number of packets behind the last one that has a row.
    pub omitted: u64,
}

impl Packets {
    /// Reads the packets of a connection from the files in which it was found.
    ///
    /// # Errors
    /// As [`Inference::read`](crate::Inference::read).
    pub fn read(
        inputs: &[Input<'_>],
        selection: Selection,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Self, Error> {
        let recorder = || Recorder {
            selection,
            connection: None,
            began: Time::ZERO,
            rows: PacketRows::default(),
            packets: 0,
        };
        let (recorders, _) = captures(inputs, 0, &mut go_on, &recorder)?;
        let found = recorders.into_iter().max_by_key(|recorder| recorder.packets);
        let (rows, packets) = found.map_or_else(Default::default, |it| (it.rows, it.packets));
        Ok(Self { table: rows.into_table(), omitted: packets.saturating_sub(MAX_PACKETS) })
    }
}

/// Recorder of a connection's packets in one capture.
struct Recorder {
    selection: Selection,
    connection: Option<Connection>,
    began: Time,
    rows: PacketRows,
    packets: u64,
}

impl Consumer for Recorder {
    fn on_segment(&mut self, segment: &Segment, since: Option<Duration>) -> bool {
        let Selection { client, server, times, file } = self.selection;
        let ends = (segment.from, segment.to);
        let (first, last) = times;
        if (ends != (client, server) && ends != (server, client))
            || segment.at < first
            || segment.at > last
        {
            return false;
        }
        let connection = match &mut self.connection {
            Some(connection) if !connection.is_replaced_by(segment) => connection,
            _ if segment.file != file => return false,
            connection => {
                (self.began, self.packets) = (segment.at, 0);
                self.rows = PacketRows::default();
                connection.insert(Connection::new(segment))
            }
        };
        if since.is_some_and(|since| connection.is_duplicate(segment, since)) {
            return true;
        }
        let placed = connection.on_segment(segment);
        self.packets += 1;
        if self.packets <= MAX_PACKETS {
            self.rows.push(self.began, segment, connection, placed, segment.from == server);
        }
        false
    }
}
