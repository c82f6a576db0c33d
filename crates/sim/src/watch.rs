//! Those who read what passes and what queues decide: captures, and the messengers of routers.

use core::fmt;
use std::collections::BTreeMap;

use cwnd_aqm::{Messenger, Outcome};
use cwnd_link::{Line, Reader};
use cwnd_quantity::Time;
use cwnd_tcp::Segment;

use crate::capture::Capture;
use crate::event::FlowId;
use crate::packet::{Packet, take_note};
use crate::segments::Segments;

/// All of them. Most runs have none.
#[derive(Debug, Default)]
pub struct Watch {
    /// Files that packets are written to.
    pub capture: Option<Capture>,
    offices: Vec<Office>,
    /// Messages that are to be sent now.
    drafts: Vec<Draft>,
}

/// Where the packets of a flow go that data crosses: its group, and which of its group's ways.
pub type WayId = (u32, u32);

/// A router's messenger at the queue of one of its links.
pub struct Office {
    /// The line with the queue.
    pub line: u32,
    /// Reads its verdicts.
    pub reader: Reader,
    /// Index of the node that the router is.
    pub router: u32,
    /// Says what is told.
    pub messenger: Box<dyn Messenger<Packet>>,
    /// The hops to the sources of data that goes these ways; every way that crosses the link is here.
    pub hops: BTreeMap<WayId, u32>,
    /// How many messages it has sent.
    pub sent: u64,
}

impl fmt::Debug for Office {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Office").field("line", &self.line).finish_non_exhaustive()
    }
}

/// A message before it is sent.
#[derive(Clone, Copy, Debug)]
pub struct Draft {
    /// Whose packet it is about.
    pub flow: FlowId,
    /// Where it starts.
    pub hop: u32,
    /// What it says.
    pub segment: Segment,
}

impl Watch {
    /// Adds a messenger.
    pub fn add(&mut self, office: Office) {
        self.offices.push(office);
    }

    /// What messengers counted, by name.
    pub fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        for office in &self.offices {
            office.messenger.count(each);
        }
    }

    /// How many messages were sent about packets of a line's queue.
    pub fn sent_about(&self, line: u32) -> u64 {
        self.offices.iter().filter(|office| office.line == line).map(|office| office.sent).sum()
    }

    /// Has everybody read what the queue of a line decided of late, and gives the messages that follow from it; `way_of` says
    /// which way data goes that is at a hop.
    #[cold]
    pub fn read(
        &mut self,
        i: u32,
        line: &mut Line<Packet>,
        segments: &Segments,
        way_of: impl Fn(u32) -> Option<WayId>,
    ) -> Vec<Draft> {
        if let Some(capture) = &mut self.capture {
            capture.verdicts(i, line, segments);
        }
        let noted = self.capture.is_some();
        let drafts = &mut self.drafts;
        for office in self.offices.iter_mut().filter(|office| office.line == i) {
            while let Some(verdict) = line.read(office.reader) {
                let queued = line.backlog();
                let packet = verdict.packet;
                // RFC 1122 § 3.2.2: no message is about a message; and who only acknowledges has nothing to slow down.
                let way = way_of(packet.next_hop().0);
                let Some(&hop) = way.and_then(|way| office.hops.get(&way)) else { continue };
                let mut about = *segments.get(packet.place());
                if about.is_ack() {
                    // Of a request: it goes where data goes.
                    continue;
                }
                let Some(level) = office.messenger.tells(&verdict, queued, segments) else {
                    continue;
                };
                if noted {
                    take_note(&mut about);
                }
                let marked = matches!(verdict.what, Outcome::Marked { .. });
                office.sent += 1;
                let segment = about.quench(marked, level, office.router);
                drafts.push(Draft { flow: packet.flow(), hop, segment });
            }
        }
        core::mem::take(drafts)
    }

    /// The place of the messages is used again.
    pub fn give_back(&mut self, mut drafts: Vec<Draft>) {
        drafts.clear();
        self.drafts = drafts;
    }

    /// A host sends a segment.
    #[cold]
    pub fn sent_by_host(&mut self, now: Time, flow: FlowId, segment: &mut Segment) {
        if let Some(capture) = &mut self.capture {
            capture.sent_by_host(now, flow, segment);
        }
    }

    /// A host receives a segment.
    #[cold]
    pub fn received_by_host(&mut self, flow: FlowId, segment: &mut Segment) {
        if let Some(capture) = &mut self.capture {
            capture.received_by_host(flow, segment);
        }
    }

    /// A packet came to a pipe, and was lost or not.
    #[cold]
    pub fn entered_pipe(
        &mut self,
        now: Time,
        pipe: u32,
        flow: FlowId,
        segment: &Segment,
        lost: bool,
    ) {
        if let Some(capture) = &mut self.capture {
            capture.entered_pipe(now, pipe, flow, segment, lost);
        }
    }

    /// A packet left a line.
    #[cold]
    pub fn left_line(&mut self, now: Time, line: u32, flow: FlowId, segment: &Segment) {
        if let Some(capture) = &mut self.capture {
            capture.left_line(now, line, flow, segment);
        }
    }
}
