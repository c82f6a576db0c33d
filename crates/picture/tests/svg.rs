//! What is on a picture, read back from the document.

use cwnd_picture::{Line, Marker, Panel, Picture, Shared, colour, svg};
use roxmltree::{Document, Node};

/// Units of the document in a point.
const UNITS: f64 = 10.0;

fn line(x: &[f64], y: &[f64]) -> Line {
    Line {
        x: x.to_vec(),
        y: y.iter().copied().map(Some).collect(),
        colour: colour("#0072B2").expect("a colour"),
        width: 1.0,
        dashes: vec![],
        joined: true,
        steps: false,
        marker: None,
        label: None,
        interval: None,
        band: None,
    }
}

fn panel(lines: Vec<Line>) -> Panel {
    Panel {
        title: String::new(),
        title_left: false,
        x_label: String::new(),
        y_label: String::new(),
        x_log: false,
        y_log: false,
        x_tight: true,
        x_limits: (None, None),
        y_limits: (None, None),
        ticks: None,
        x_grid: true,
        lines,
        bare: false,
        shown: true,
    }
}

fn picture(columns: usize, panels: Vec<Panel>) -> Picture {
    Picture {
        width_pt: 500.0,
        height_pt: 300.0,
        columns,
        heights: vec![],
        panels,
        x_label: "Time (s)".to_owned(),
        y_label: "Window".to_owned(),
        shared_x: Shared::All,
        shared_y: Shared::All,
        legend_above: true,
    }
}

fn drawn(picture: &Picture) -> String {
    svg(picture).expect("drawing in memory does not fail")
}

fn texts<'a>(document: &'a Document) -> Vec<&'a str> {
    document
        .descendants()
        .filter(|n| n.has_tag_name("text"))
        .filter_map(|n| n.text())
        .map(str::trim)
        .collect()
}

/// The corners of the polylines of a colour, in points.
fn paths(document: &Document, stroke: &str) -> Vec<Vec<(f64, f64)>> {
    let corners = |node: Node| {
        let points = node.attribute("points").unwrap_or_default();
        let of = |pair: &str| {
            let (x, y) = pair.split_once(',').expect("two numbers");
            (
                x.parse::<f64>().expect("a number") / UNITS,
                y.parse::<f64>().expect("a number") / UNITS,
            )
        };
        points.split_whitespace().map(of).collect()
    };
    let all = document.descendants().filter(|n| n.has_tag_name("polyline"));
    all.filter(|n| n.attribute("stroke") == Some(stroke)).map(corners).collect()
}

#[test]
fn a_line_is_as_straight_on_paper_as_its_numbers() {
    let text = drawn(&picture(1, vec![panel(vec![line(&[0.0, 1.0, 4.0], &[0.0, 2.0, 8.0])])]));
    let document = Document::parse(&text).expect("XML");
    let [path] = &paths(&document, "#0072B2")[..] else { panic!("one line") };
    let [(x0, y0), (x1, y1), (x2, y2)] = path[..] else { panic!("three points") };
    assert!(x0 < x1 && x1 < x2 && y0 > y1 && y1 > y2);
    // A quarter of the way, both ways; a unit is a tenth of a point.
    assert!(((x1 - x0) / (x2 - x0) - 0.25).abs() < 1e-3);
    assert!(((y0 - y1) / (y0 - y2) - 0.25).abs() < 1e-3);
    assert_eq!(document.root_element().attribute("width"), Some("500pt"));
}

#[test]
fn axes_have_labels_with_their_marks_and_their_legend() {
    let mut one = line(&[0.0, 100.0], &[0.0, 50.0]);
    let mut other = line(&[0.0, 100.0], &[10.0, 40.0]);
    one.label = Some("CUBIC & <ABE>".to_owned());
    other.label = Some("NewReno".to_owned());
    let mut only = panel(vec![one, other]);
    only.title = "a title".to_owned();
    only.y_label = "Queueing delay,\nmedian (ms)".to_owned();
    let text = drawn(&picture(1, vec![only]));
    let document = Document::parse(&text).expect("XML");
    let seen = texts(&document);
    for expected in [
        "Time (s)",
        "Window",
        "a title",
        "Queueing delay,",
        "median (ms)",
        "CUBIC & <ABE>",
        "NewReno",
        "0",
        "20",
        "40",
    ] {
        assert!(seen.contains(&expected), "{expected} is missing in {seen:?}");
    }
}

#[test]
fn one_line_needs_no_legend() {
    let mut only = line(&[0.0, 1.0], &[0.0, 1.0]);
    only.label = Some("alone".to_owned());
    let text = drawn(&picture(1, vec![panel(vec![only])]));
    assert!(!texts(&Document::parse(&text).expect("XML")).contains(&"alone"));
}

#[test]
fn panels_that_share_an_axis_are_drawn_to_one_scale_and_marked_once() {
    let panels = [10.0, 20.0].map(|top| panel(vec![line(&[0.0, 1.0], &[0.0, top])]));
    let text = drawn(&picture(2, panels.to_vec()));
    let document = Document::parse(&text).expect("XML");
    let paths = paths(&document, "#0072B2");
    let rise = |path: &[(f64, f64)]| path[0].1 - path[1].1;
    assert!((rise(&paths[1]) / rise(&paths[0]) - 2.0).abs() < 0.01);
    assert_eq!(texts(&document).iter().filter(|&&text| text == "20").count(), 1);
}

#[test]
fn an_interval_reaches_as_far_as_it_says() {
    let mut points = line(&[0.0, 1.0, 2.0], &[1.0, 2.0, 3.0]);
    points.joined = false;
    points.marker = Some(Marker::Square);
    points.interval = Some((vec![None, Some(1.5), Some(3.0)], vec![None, Some(3.25), Some(3.0)]));
    let mut level = line(&[0.0, 2.0], &[1.5, 1.5]);
    level.colour = colour("#E69F00").expect("a colour");
    let text = drawn(&picture(1, vec![panel(vec![points, level])]));
    let document = Document::parse(&text).expect("XML");
    let interval = paths(&document, "#0072B2");
    assert_eq!(interval.len(), 3, "a bar and two ends; points without an interval have none");
    let below = paths(&document, "#E69F00")[0][0].1;
    assert!((interval[0][0].1 - below).abs() < 0.11, "it begins where 1.5 is");
    let above = (interval[0][0].1 - interval[0][1].1) / (below - interval[0][1].1);
    assert!((above - 1.0).abs() < 0.01, "its ends need not be as far from the point");
    let squares = document.descendants().filter(|n| n.has_tag_name("polygon")).count();
    assert_eq!(squares, 3);
}

#[test]
fn a_band_with_gaps_is_drawn_in_parts() {
    let mut banded = line(&[0.0, 1.0, 2.0, 3.0, 4.0], &[0.0; 5]);
    let low = [None, Some(1.0), Some(1.0), None, Some(1.0)];
    let high = low.map(|edge| edge.map(|y| y + 1.0));
    banded.y = low.to_vec();
    banded.band = Some((low.to_vec(), high.to_vec()));
    let text = drawn(&picture(1, vec![panel(vec![banded])]));
    let document = Document::parse(&text).expect("XML");
    let bands = document.descendants().filter(|n| n.has_tag_name("polygon")).count();
    assert_eq!(bands, 2, "before and after the gap");
    assert!(!text.contains("NaN"));
}

#[test]
fn decades_of_a_logarithmic_axis_have_the_same_length() {
    let mut only = panel(vec![line(&[0.1, 1.0, 10.0, 100.0], &[0.0, 0.2, 0.5, 1.0])]);
    only.x_log = true;
    let text = drawn(&picture(1, vec![only]));
    let path = &paths(&Document::parse(&text).expect("XML"), "#0072B2")[0];
    let steps: Vec<f64> = path.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(steps.iter().all(|step| (step - steps[0]).abs() < 0.11), "{steps:?}");
}

#[test]
fn a_line_on_two_logarithmic_axes_is_straight_where_it_is_a_power() {
    let mut only = panel(vec![line(&[1.0, 10.0, 100.0], &[1.0, 0.1, 0.01])]);
    (only.x_log, only.y_log) = (true, true);
    // The band reaches below what a logarithmic axis has, and ends at the axis.
    only.y_limits = (Some(0.001), Some(1.0));
    let low = vec![Some(0.9), Some(0.0), Some(-1.0)];
    only.lines[0].band = Some((low, vec![Some(1.0), Some(0.2), Some(0.1)]));
    let text = drawn(&picture(1, vec![only]));
    let document = Document::parse(&text).expect("XML");
    let path = &paths(&document, "#0072B2")[0];
    let slope = |a: (f64, f64), b: (f64, f64)| (b.1 - a.1) / (b.0 - a.0);
    assert!((slope(path[0], path[1]) - slope(path[1], path[2])).abs() < 0.01, "{path:?}");
    assert!(text.contains(">0.01<") && text.contains(">0.1<"));
    assert_eq!(document.descendants().filter(|n| n.has_tag_name("polygon")).count(), 1);
    assert!(!text.contains("NaN"));
}

#[test]
fn nothing_leaves_its_panel_at_a_limit() {
    let mut only = panel(vec![line(&[0.0, 1.0, 2.0], &[0.0, 100.0, 1.0])]);
    only.y_limits = (Some(0.0), Some(2.0));
    let text = drawn(&picture(1, vec![only]));
    let document = Document::parse(&text).expect("XML");
    let axis = paths(&document, "#000000")[0].iter().map(|p| p.1).fold(f64::MAX, f64::min);
    for (_, y) in paths(&document, "#0072B2").concat() {
        assert!(y >= axis - 0.11, "{y} is above {axis}");
    }
}

#[test]
fn pictures_of_nothing_are_pictures() {
    for panels in [
        vec![],
        vec![panel(vec![])],
        vec![panel(vec![line(&[], &[])])],
        vec![panel(vec![line(&[1.0], &[1.0])])],
    ] {
        let text = drawn(&picture(1, panels));
        assert!(Document::parse(&text).is_ok());
    }
}

#[test]
fn marks_are_written_once_where_neighbours_have_the_same_axis() {
    let panels = [10.0, 10.0, 1000.0].map(|top| panel(vec![line(&[0.0, 1.0], &[0.0, top])]));
    let mut apart = picture(3, panels.to_vec());
    apart.shared_y = Shared::None;
    let text = drawn(&apart);
    let document = Document::parse(&text).expect("XML");
    let written = |mark| texts(&document).iter().filter(|&&text| text == mark).count();
    assert_eq!((written("10"), written("1000")), (1, 1));
    let rises: Vec<f64> =
        paths(&document, "#0072B2").iter().map(|path| path[0].1 - path[1].1).collect();
    assert!(rises.iter().all(|rise| (rise - rises[0]).abs() < 0.11), "each fills its panel");
}
