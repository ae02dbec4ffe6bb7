//! `udma-sim report`: the page is well-formed, needs nothing but itself, and escapes what it shows.

mod common;

use common::cli::{stderr, text, udma_sim};
use std::fs;

/// Elements without an end.
const VOID: [&str; 2] = ["meta", "br"];

/// The names of all elements of a page, in order, once each is found to be closed where it must be.
fn elements(page: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    let mut all = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a doctype");
    while let Some((before, tag)) = rest.split_once('<') {
        assert!(!before.contains('>') || open.last().is_some_and(|name| name == "style"));
        let (tag, after) = tag.split_once('>').expect("a tag ends");
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "near {before:.40}");
            continue;
        }
        let mut quotes = tag.split('"').step_by(2);
        assert!(
            quotes.all(|outside| !outside.contains(['<', '\''])),
            "{tag}"
        );
        assert!(tag.matches('"').count() % 2 == 0, "{tag}");
        let name = tag.split_whitespace().next().expect("a name").to_string();
        if !VOID.contains(&name.as_str()) {
            open.push(name.clone());
        }
        all.push(name);
    }
    assert!(open.is_empty(), "never closed: {open:?}");
    all
}

/// Nothing on the page is loaded from elsewhere or runs.
fn self_contained(page: &str) {
    for word in [
        "http:", "https:", "url(", "@import", "<script", "<link", "<img", "<iframe", "src=",
        "href=",
    ] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn pages_of_runs_and_recordings_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let recording = folder.path().join("run.record");
    for scenario in [
        "traces/queues.toml",
        "traces/dmb-vs-sow.toml",
        "traces/all-reduce.toml",
    ] {
        udma_sim(&["report", scenario, "-o", text(&page)])
            .success()
            .stdout_eq("")
            .stderr_eq("");
        let of_run = fs::read_to_string(&page).unwrap();
        udma_sim(&["run", scenario, "--record", text(&recording)]).success();
        udma_sim(&["report", text(&recording), "-o", text(&page)]).success();
        let of_recording = fs::read_to_string(&page).unwrap();
        for page in [&of_run, &of_recording] {
            self_contained(page);
            let elements = elements(page);
            let count = |name: &str| elements.iter().filter(|element| *element == name).count();
            assert_eq!(count("h2"), 6);
            // Throughput, stations, four histograms, channels, packets.
            assert_eq!(count("svg"), 8, "{scenario}");
            assert!(count("rect") > 20);
            assert!(!page.contains("NaN") && !page.contains("inf"), "{scenario}");
        }
        // All figures are the same: only what was run is said in other words.
        let from = |page: &str| page.split_once("<h2>Throughput").unwrap().1.to_string();
        assert_eq!(from(&of_run), from(&of_recording), "{scenario}");
        assert!(of_run.contains(">passed<"));
    }
}

#[test]
fn what_a_user_wrote_is_text() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let scenario = folder.path().join("odd.toml");
    let odd = fs::read_to_string("traces/quickstart.toml").unwrap();
    let odd = odd
        .replacen(
            "name = \"quickstart\"",
            "name = \"<script>alert(1)</script>\"",
            1,
        )
        .replacen(
            "1 MiB from HBM to HBM",
            "a & b <img src=x> \\\"quoted\\\"",
            1,
        )
        .replace("equals = 1", "equals = 2");
    fs::write(&scenario, odd).unwrap();
    udma_sim(&["report", text(&scenario), "-o", text(&page)]).code(1);
    let page = fs::read_to_string(&page).unwrap();
    elements(&page);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("a &amp; b &lt;img src=x&gt;"));
    assert!(!page.contains("<script") && !page.contains("<img"));
    assert!(page.contains(">failed<") && page.contains("it is 1"));
}

#[test]
fn bad_input_makes_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let report = udma_sim(&["report", "traces/none.toml", "-o", text(&page)]).code(2);
    assert!(stderr(&report).contains("cannot read scenario traces/none.toml"));
    assert!(!page.exists());
    let report = udma_sim(&[
        "report",
        "traces/quickstart.toml",
        "-o",
        text(folder.path()),
    ])
    .code(2);
    let error = stderr(&report);
    assert!(
        error.contains("--output takes the path of a file"),
        "{error}"
    );

    // A damaged recording is shown up to the damage, which is told.
    let recording = folder.path().join("run.record");
    udma_sim(&[
        "run",
        "traces/quickstart.toml",
        "--record",
        text(&recording),
    ])
    .success();
    let bytes = fs::read(&recording).unwrap();
    fs::write(&recording, &bytes[..bytes.len() / 2]).unwrap();
    let report = udma_sim(&["report", text(&recording), "-o", text(&page)]).code(2);
    assert!(
        stderr(&report).contains("is truncated"),
        "{}",
        stderr(&report)
    );
    elements(&fs::read_to_string(&page).unwrap());
    let seed = ["report", text(&recording), "-o", text(&page), "--seed", "1"];
    assert!(stderr(&udma_sim(&seed).code(2)).contains("a recording contains its config and seed"));
}
