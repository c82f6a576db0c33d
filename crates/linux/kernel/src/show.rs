//! Prints cards as tables for users.

use std::io::IsTerminal as _;

use serde_json::Value;

use crate::family::Kind;
use crate::info_map::Card;
use crate::settings;

/// Prints one table for each family among the cards.
pub fn table(cards: &[Card]) {
    let mut left: Vec<&Card> = cards.iter().collect();
    let mut first = true;
    while let Some(card) = left.first() {
        let family = card.controller.family();
        let (these, others): (Vec<&Card>, Vec<&Card>) =
            left.iter().partition(|card| card.controller.family() == family);
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

fn family_table(cards: &[&Card]) {
    let columns = cards.first().map_or(&[][..], |card| card.controller.family().columns);
    print!("{:<15} {:<14} {:>7}", "name", "controller", "sockets");
    for (title, _) in columns {
        print!(" {title:>8}");
    }
    println!("  settings");
    for card in cards {
        print!("{:<15} {:<14} {:>7}", card.name, card.controller.name(), card.sockets());
        for (_, counter) in columns {
            print!(" {:>8}", card.count(counter));
        }
        println!("  {}", told(card));
    }
}

/// Returns the settings of a card in the form of options.
fn told(card: &Card) -> String {
    let settings = card.controller.family().settings.iter().zip(card.settings);
    let words = settings.filter(|(setting, _)| setting.kind.is_asked_for());
    let words = words.map(|(setting, word)| match settings::shown(setting, word) {
        Value::String(text) if setting.kind != Kind::Address => text,
        Value::String(text) => format!("{} {text}", setting.name),
        other => format!("{} {other}", setting.name),
    });
    words.collect::<Vec<_>>().join(", ")
}
