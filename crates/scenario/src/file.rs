//! Top-level keys of a scenario file.

use cwnd_schema::SectionKeys;
use cwnd_schema::file::{At, Context, Form, ReadValue, WriteValue, WrittenValue};

use crate::model::Scenario;
use crate::value_forms::Format;

/// Top level of a scenario file.
#[derive(SectionKeys)]
pub(crate) struct ScenarioFile {
    /// Version of the file format, 1 or 2, which differ in defaults and in the keys that are
    /// refused. A file without it has schema 1.
    #[default(1, "cwnd: files from before there were two")]
    schema: u64,
    /// Short name, used for the output directory.
    #[derived("the file's name without `.toml`", "cwnd: what the file is called says what it is")]
    name: Option<String>,
    /// Question that the scenario answers.
    #[default("", "none")]
    description: String,
    /// Times, seed and sampling of a run.
    #[entry(Form::Section)]
    #[required("none")]
    run: Subsection,
    /// Selection of the rows in the results, for runs with more connections than are wanted there.
    #[entry(Form::Section)]
    #[derived("everything has a row", "none")]
    record: Option<Subsection>,
    /// One bottleneck between two sides; the short form of a graph of two links.
    #[entry(Form::Section)]
    #[derived("none; either this or links", "none")]
    dumbbell: Option<Subsection>,
    /// Directed links, by name; their ends are the nodes.
    #[entry(Form::Named)]
    #[derived("none; either these or a dumbbell", "none")]
    link: Option<Subsection>,
    /// Positions at which nodes are drawn, by name.
    #[entry(Form::Named)]
    #[derived("none; drawings find places for nodes that have none", "none")]
    node: Option<Subsection>,
    /// Groups of flows that are alike, by name.
    #[entry(Form::Named)]
    #[required("none")]
    flow: Subsection,
    /// Values that vary from run to run.
    #[entry(Form::Section)]
    #[derived("one run", "none")]
    sweep: Option<Subsection>,
}

/// Marker for a section that has its own struct, which reads and writes it.
struct Subsection;

impl ReadValue<Format> for Subsection {
    fn read(_: At<'_>, _: &mut Context<'_>) -> Option<Self> {
        Some(Self)
    }
}

impl WriteValue<Format> for Subsection {
    fn write(&self) -> WrittenValue<'_> {
        WrittenValue::Section
    }
}

impl ScenarioFile {
    /// Returns the top-level keys that describe `scenario`, as a dumbbell or as a graph.
    pub fn of(scenario: &Scenario, is_dumbbell: bool) -> Self {
        Self {
            schema: scenario.schema,
            name: Some(scenario.name.clone()),
            description: scenario.description.clone(),
            run: Subsection,
            record: Some(Subsection),
            dumbbell: is_dumbbell.then_some(Subsection),
            link: (!is_dumbbell).then_some(Subsection),
            node: Some(Subsection),
            flow: Subsection,
            sweep: None,
        }
    }
}
