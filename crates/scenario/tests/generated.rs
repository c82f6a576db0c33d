//! Freshness of generated files: the JSON Schema and the scenario reference.

mod stored;

#[test]
fn the_json_schema_is_fresh() {
    let schema = serde_json::to_string_pretty(&cwnd_scenario::json_schema()).unwrap();
    stored::check("schema/scenario.schema.json", &schema);
}

#[test]
fn the_scenario_reference_is_fresh() {
    stored::check("docs/reference/scenario.md", &cwnd_scenario::reference_markdown());
}
