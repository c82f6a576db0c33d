//! Paints a described figure as SVG in a few milliseconds: what `cwnd run` shows. Python describes figures once, and has
//! them painted here or by matplotlib.

mod advances;
mod extent;
mod figure;
mod layout;
mod legend;
mod paint;
mod sizes;
mod stroke;
mod text;
mod ticks;
mod words;

pub use extent::{Axes, Extent, LARGEST, value};
pub use figure::{Line, Marker, Panel, Picture, Shared, Values, colour};
pub use layout::{Layout, Place, layout};
pub use legend::{Entry, Legend};
pub use paint::svg;
pub use sizes::{LINE_PT, MARK_PT};
pub use text::Text;
pub use ticks::{Mark, Marks};
