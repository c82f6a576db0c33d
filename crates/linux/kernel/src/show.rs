//! Prints loaded controllers as tables for users.

use std::io::IsTerminal as _;

use serde_json::Value;

use crate::family::Kind;
use crate::info_map::ControllerInfo;
use crate::settings;

/// Prints one table for each family among the controllers.
pub fn table(infos: &[ControllerInfo]) {
    let mut left: Vec<&ControllerInfo> = infos.iter().collect();
    let mut first = true;
    while let Some(controller_info) = left.first() {
        let family = controller_info.controller.family();
        let (these, others): (Vec<&ControllerInfo>, Vec<&ControllerInfo>) =
            left.iter().partition(|controller_info| controller_info.controller.family() == family);
        if !first {
            println!();
        }
        first = false;
        family_table(&these);
        left = others;
    }
    if std::io::stdout().is_terminal() {
        println!(
            "reductions by cause; columns: docs/how-to/kernel.md; local: the sender's own queue"
        );
    }
}

fn family_table(infos: &[&ControllerInfo]) {
    let columns = infos
        .first()
        .map_or(&[][..], |controller_info| controller_info.controller.family().columns);
    print!("{:<15} {:<14} {:>7}", "name", "controller", "sockets");
    for (title, _) in columns {
        print!(" {title:>8}");
    }
    println!("  settings");
    for controller_info in infos {
        print!(
            "{:<15} {:<14} {:>7}",
            controller_info.name,
            controller_info.controller.name(),
            controller_info.sockets()
        );
        for (_, counter) in columns {
            print!(" {:>8}", controller_info.count(counter));
        }
        println!("  {}", settings_text(controller_info));
    }
}

/// Returns the settings of a controller in the form of options.
fn settings_text(controller_info: &ControllerInfo) -> String {
    let settings =
        controller_info.controller.family().settings.iter().zip(controller_info.settings);
    let words = settings.filter(|(setting, _)| setting.kind.has_option());
    let words = words.map(|(setting, word)| match settings::to_json(setting, word) {
        Value::String(text) if setting.kind != Kind::Address => text,
        Value::String(text) => format!("{} {text}", setting.name),
        other => format!("{} {other}", setting.name),
    });
    words.collect::<Vec<_>>().join(", ")
}
