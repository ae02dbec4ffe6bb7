//! What README and docs show is what the commands print, and every key is documented.
//!
//! `UPDATE_DOCS=1 cargo test --test docs` rewrites the outputs shown.

use snapbox::IntoData;
use snapbox::cmd::{Command, cargo_bin};
use std::fs;

/// What the shell prints for a command line of the docs, without the lines of a build.
fn printed(command: &str) -> String {
    let arguments = command.strip_prefix("cargo run --release --");
    let arguments = arguments.unwrap_or_else(|| panic!("do not know how to run {command:?}"));
    let run = Command::new(cargo_bin!("udma-sim"))
        .env_remove("RUST_LOG")
        .args(arguments.split_whitespace())
        .assert();
    let output = run.get_output();
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8(text).unwrap()
}

/// The output to show in place of the one shown. An excerpt, with lines `...` for what is left out,
/// is not made anew but must match.
fn refreshed(command: &str, shown: &str) -> String {
    let real = printed(command);
    if shown.lines().any(|line| line == "...") {
        snapbox::assert_data_eq!(real, shown);
        return shown.to_string();
    }
    real
}

/// The text of a document with the output of every `$ cargo run` in a console block replaced by
/// the real one.
fn refresh(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    let mut console = false;
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        match line {
            "```console" => console = true,
            "```" => console = false,
            _ => {}
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| console) else {
            continue;
        };
        let mut shown = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ") && *line != "```") {
            shown.push_str(line);
            shown.push('\n');
        }
        match command.starts_with("cargo run") {
            true => out.push_str(&refreshed(command, &shown)),
            false => out.push_str(&shown),
        }
    }
    out
}

#[test]
fn outputs_shown_are_real() {
    let mut commands = 0;
    for path in [
        "README.md",
        "docs/scenario.md",
        "docs/dram.md",
        "docs/telemetry.md",
    ] {
        let text = fs::read_to_string(path).unwrap();
        let real = refresh(&text);
        commands += text.matches("\n$ cargo run").count();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(path, &real).unwrap();
        } else {
            snapbox::assert_data_eq!(text.raw(), real.raw());
        }
    }
    assert!(commands >= 3);
}

/// The README shows the two commands that the project is about, before anything else.
#[test]
fn readme_begins_with_the_two_commands() {
    let text = fs::read_to_string("README.md").unwrap();
    let commands: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("$ "))
        .collect();
    assert_eq!(
        commands[..2],
        [
            "cargo run --release -- run traces/quickstart.toml",
            "cargo test --workspace"
        ]
    );
    let screen: Vec<&str> = text.lines().take(45).collect();
    assert!(screen.contains(&"$ cargo test --workspace"));
}

/// Every key of scenario files stands in `docs/scenario.md`.
#[test]
fn every_scenario_key_is_documented() {
    let docs = fs::read_to_string("docs/scenario.md").unwrap();
    let keys = udma_sim::scenario::keys();
    for key in &keys {
        let shown = docs.contains(&format!("`{key}`"))
            || docs.contains(&format!("`{key} = "))
            || docs.contains(&format!("[[{key}]]"))
            || docs.contains(&format!(", {key} = "))
            || docs.contains(&format!("{{ {key} = "));
        assert!(shown, "docs/scenario.md does not say what {key} is");
    }
    assert!(keys.len() > 100, "found only {} keys", keys.len());
}
