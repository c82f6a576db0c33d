//! Indices of segments and of a link's parts.

/// Slot of a segment in [`Segments`](crate::segments::Segments).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSlot(u32);

impl SegmentSlot {
    /// The slot with this index.
    #[inline]
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// Index of the slot.
    #[inline]
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// Parts of a scenario's link, as indices into the network's tables.
#[derive(Clone, Copy, Debug)]
pub struct LinkParts {
    /// Queue and transmitter; `None` if the rate is unlimited.
    pub line: Option<u32>,
    /// Propagation delay and impairments; `None` for a line without either.
    pub pipe: Option<u32>,
    /// Middlebox that tampers with options, behind line and pipe.
    pub middlebox: Option<u32>,
}
