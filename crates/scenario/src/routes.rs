//! Shortest paths through the graph of links.

use core::cell::OnceCell;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

use cwnd_quantity::Duration;

/// A directed link as an edge of the graph.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub name: String,
    pub from: usize,
    pub to: usize,
    pub delay: Duration,
}

/// Shortest paths through a graph. The tree towards a destination is computed at its first use.
#[derive(Debug)]
pub struct Routes {
    edges: Vec<Edge>,
    /// Incoming links of each node.
    into: Vec<Vec<usize>>,
    /// By destination: for each node the next link on the shortest path to it, if there is a path.
    trees: Vec<OnceCell<Vec<Option<usize>>>>,
}

impl Routes {
    pub(crate) fn new(edges: Vec<Edge>, nodes: usize) -> Self {
        let mut into = vec![Vec::new(); nodes];
        for (i, edge) in edges.iter().enumerate() {
            into[edge.to].push(i);
        }
        Self { edges, into, trees: vec![OnceCell::new(); nodes] }
    }

    /// Returns all links.
    pub(crate) fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns the shortest path: least delay, then fewest links, then the links that come first in
    /// the file. `None` if there is no path.
    #[must_use]
    pub fn shortest(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let tree = self.trees.get(to)?.get_or_init(|| self.tree(to));
        let mut route = Vec::new();
        let mut node = from;
        while node != to {
            let link = (*tree.get(node)?)?;
            route.push(link);
            node = self.edges[link].to;
        }
        Some(route)
    }

    /// Computes the shortest paths to a node from all others (Dijkstra 1959, backwards from the
    /// destination).
    fn tree(&self, to: usize) -> Vec<Option<usize>> {
        let mut cost: Vec<Option<Cost>> = vec![None; self.into.len()];
        cost[to] = Some((0, 0));
        let mut open = BinaryHeap::from([Reverse(((0, 0), to))]);
        while let Some(Reverse((found, node))) = open.pop() {
            if cost[node] != Some(found) {
                continue;
            }
            for edge in self.into[node].iter().map(|&i| &self.edges[i]) {
                let through = edge.before(found);
                if cost[edge.from].is_none_or(|c| through < c) {
                    cost[edge.from] = Some(through);
                    open.push(Reverse((through, edge.from)));
                }
            }
        }
        // At each node the first link in the file that lies on a shortest path.
        let mut next = vec![None; cost.len()];
        for (i, edge) in self.edges.iter().enumerate() {
            let best = cost[edge.to].map(|c| edge.before(c));
            if best.is_some() && best == cost[edge.from] {
                next[edge.from].get_or_insert(i);
            }
        }
        next
    }
}

impl Edge {
    /// Cost of the path that takes this link first and continues at cost `(delay, links)`.
    fn before(&self, (delay, links): Cost) -> Cost {
        (delay + u128::from(self.delay.0), links + 1)
    }
}

/// Total delay in ns, then number of links. Every link adds at least one, so no shortest path has a
/// cycle.
type Cost = (u128, usize);

/// Describes why a given route does not lead from `from` to `to`, or takes a link twice: the
/// position of the faulty link, and a message. `None` for a valid route.
pub(crate) fn broken(
    edges: &[Edge],
    names: &[String],
    route: &[usize],
    from: usize,
    to: usize,
) -> Option<(usize, String)> {
    let mut node = from;
    for (i, &link) in route.iter().enumerate() {
        let edge = &edges[link];
        if edge.from != node {
            let arrived = if i == 0 { "the flow starts" } else { "the link before it ends" };
            return Some((
                i,
                format!(
                    "the link `{}` leaves `{}`, but {arrived} at `{}`",
                    edge.name, names[edge.from], names[node]
                ),
            ));
        }
        if route[..i].contains(&link) {
            return Some((i, format!("the route takes the link `{}` twice", edge.name)));
        }
        node = edge.to;
    }
    if node == to {
        return None;
    }
    let last = route.len().saturating_sub(1);
    Some((last, format!("the route ends at `{}`, not at `{}`", names[node], names[to])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortest(graph: &[Edge], nodes: usize, from: usize, to: usize) -> Option<Vec<usize>> {
        Routes::new(graph.to_vec(), nodes).shortest(from, to)
    }

    fn edges(list: &[(usize, usize, u64)]) -> Vec<Edge> {
        list.iter()
            .enumerate()
            .map(|(i, &(from, to, ms))| Edge {
                name: i.to_string(),
                from,
                to,
                delay: Duration::from_millis(ms),
            })
            .collect()
    }

    #[test]
    fn the_least_delay_wins_over_fewer_links() {
        let graph = edges(&[(0, 2, 10), (0, 1, 3), (1, 2, 3)]);
        assert_eq!(shortest(&graph, 3, 0, 2), Some(vec![1, 2]));
    }

    #[test]
    fn fewer_links_win_among_equal_delays() {
        let graph = edges(&[(0, 1, 5), (1, 2, 5), (0, 2, 10)]);
        assert_eq!(shortest(&graph, 3, 0, 2), Some(vec![2]));
    }

    #[test]
    fn the_link_that_comes_first_breaks_a_tie() {
        let graph = edges(&[(0, 2, 5), (0, 1, 5), (1, 3, 5), (2, 3, 5), (0, 2, 5)]);
        assert_eq!(shortest(&graph, 4, 0, 3), Some(vec![0, 3]));
    }

    #[test]
    fn links_are_directed_and_a_node_may_be_out_of_reach() {
        let graph = edges(&[(0, 1, 5)]);
        assert_eq!(shortest(&graph, 2, 0, 1), Some(vec![0]));
        assert_eq!(shortest(&graph, 2, 1, 0), None);
    }

    #[test]
    fn links_without_delay_make_no_circles() {
        let graph = edges(&[(0, 1, 0), (1, 0, 0), (1, 2, 0), (2, 1, 0), (2, 3, 0)]);
        assert_eq!(shortest(&graph, 4, 0, 3), Some(vec![0, 2, 4]));
    }

    #[test]
    fn a_given_route_must_hang_together() {
        let graph = edges(&[(0, 1, 5), (1, 2, 5), (1, 0, 5)]);
        let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        assert_eq!(broken(&graph, &names, &[0, 1], 0, 2), None);
        assert!(broken(&graph, &names, &[1], 0, 2).unwrap().1.contains("starts at `a`"));
        assert!(broken(&graph, &names, &[0], 0, 2).unwrap().1.contains("ends at `b`, not at `c`"));
        assert!(broken(&graph, &names, &[0, 2, 0, 1], 0, 2).unwrap().1.contains("twice"));
    }
}
