//! Dead packets: transmitted by one link and lost at a later one (Mondal & Kuzmanovic 2008, § 5).

use super::{Hop, Network};
use crate::drop_log::PacketCount;

impl Network {
    /// Dead packets of each link until now, in the scenario's order: those that left it and were
    /// lost at a later link.
    pub fn dead(&self) -> Vec<PacketCount> {
        let mut dead = vec![PacketCount::default(); self.links.len()];
        if self.drop_log().total().packets == 0 {
            return dead;
        }
        let (lines, pipes) = self.links_by_part();
        let link_of = |hop: &Hop| match *hop {
            Hop::Line(i) => lines.get(i as usize).copied().flatten(),
            Hop::Pipe(i) => pipes.get(i as usize).copied().flatten(),
            // Neither of these loses packets.
            Hop::Middlebox(_) | Hop::Host => None,
        };
        let starts = self.route_starts.iter().map(|&(start, _)| start);
        let ends = starts.clone().skip(1).chain([self.hops.len() as u32]);
        for (start, end) in starts.zip(ends) {
            // From the end of the route to its start. A link is a line, a pipe, or a line followed
            // by a pipe.
            let (mut later, mut here, mut current) =
                (PacketCount::default(), PacketCount::default(), None);
            for hop in (start..end).rev() {
                let link = link_of(&self.hops[hop as usize]);
                if link != current {
                    later = later.plus(core::mem::take(&mut here));
                    current = link;
                    if let Some(link) = link {
                        dead[link] = dead[link].plus(later);
                    }
                }
                here = here.plus(self.drop_log().at(hop));
            }
        }
        dead
    }

    /// Link of each line and of each pipe; `None` for those of hosts.
    fn links_by_part(&self) -> (Vec<Option<usize>>, Vec<Option<usize>>) {
        let mut lines = vec![None; self.lines.len()];
        let mut pipes = vec![None; self.pipes.len()];
        for (link, parts) in self.links.iter().enumerate() {
            parts.line.into_iter().for_each(|i| lines[i as usize] = Some(link));
            parts.pipe.into_iter().for_each(|i| pipes[i as usize] = Some(link));
        }
        (lines, pipes)
    }
}
