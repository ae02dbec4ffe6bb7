//! A run on one HTML page that needs nothing but itself: no script, no other file, no network.

mod chart;
mod profile;

pub use profile::Profile;

use crate::sim::Instant;
use crate::telemetry::End;
use crate::telemetry::stats::{Latencies, Stats, Step};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Bars of a histogram.
const BINS: u64 = 40;

/// What a page says of a run beside what was seen of it.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Its name.
    pub title: String,
    /// What it is about.
    pub description: String,
    /// What was run, and how.
    pub facts: Vec<(&'static str, String)>,
    /// Whether it did what was expected, if that is known.
    pub passed: Option<bool>,
    /// What else a reader should know: failed expectations, errors, warnings.
    pub notes: Vec<String>,
}

impl Profile {
    /// The page.
    pub fn page(&self, end: &End, about: &About) -> String {
        let stats = self.collector.stats(end);
        let time = end.at - Instant::START;
        let packets: u64 = stats.queues().map(|(_, queue)| queue.packets).sum();
        let written: u64 = stats.queues().map(|(_, queue)| queue.bytes_written).sum();
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (about.title) " – udma-sim" }
                    // The style is ours, no input is in it.
                    style { (PreEscaped(include_str!("style.css"))) }
                }
                body {
                    h1 { (about.title) (verdict(about.passed)) }
                    p.soft { (about.description) }
                    dl {
                        @for (name, value) in &about.facts { dt { (name) } dd { (value) } }
                        dt { "simulated time" } dd { (stats.time_ns) " ns" }
                        dt { "written" }
                        dd { (written) " bytes, " (rate(written, stats.time_ns)) " GB/s" }
                        dt { "packets" } dd { (packets) }
                    }
                    @for note in &about.notes { p.note { (note) } }
                    h2 { "Throughput" }
                    (chart::throughput(&self.series, time))
                    h2 { "Packets" }
                    @if packets > self.packets.len() as u64 {
                        p.soft { "The first " (self.packets.len()) " of " (packets) "." }
                    }
                    (chart::packets(&self.packets, time))
                    h2 { "Stations: busy time and waits" }
                    (chart::stations(&stats))
                    h2 { "Queues" }
                    (queues(&stats))
                    h2 { "Memory channels" }
                    (chart::channels(&stats))
                    h2 { "Latencies" }
                    div.halves {
                        @for step in Step::ALL {
                            @let bins = self.all_queues(step).bins(BINS);
                            @if !bins.is_empty() { (chart::histogram(step.name(), &bins)) }
                        }
                    }
                    (latencies(&stats))
                }
            }
        };
        page.into_string()
    }

    /// The latencies of a step, all queues together.
    fn all_queues(&self, step: Step) -> Latencies {
        let mut all = Latencies::default();
        for engine in self.collector.engines.values() {
            for queue in engine.queues.values() {
                all.merge(&queue.latencies[step as usize]);
            }
        }
        all
    }
}

fn verdict(passed: Option<bool>) -> Markup {
    match passed {
        Some(true) => html! { " " span.passed { "passed" } },
        Some(false) => html! { " " span.failed { "failed" } },
        None => html! {},
    }
}

fn rate(bytes: u64, ns: f64) -> String {
    format!("{:.2}", bytes as f64 / ns.max(1e-3))
}

fn queues(stats: &Stats) -> Markup {
    html! {
        div.scroll { table {
            tr {
                @for head in ["queue", "packets", "Tx descriptors", "Rx descriptors", "bytes read",
                    "bytes written", "GB/s", "in use", "suspended by DMB", "writes held"] { th { (head) } }
            }
            @for (name, queue) in stats.queues() {
                tr {
                    td { (name) } td { (queue.packets) }
                    td { (queue.tx_descriptors) } td { (queue.rx_descriptors) }
                    td { (queue.bytes_read) } td { (queue.bytes_written) }
                    td { (format!("{:.2}", queue.gb_per_s)) }
                    td { (format!("{:.1} %", queue.utilisation * 100.0)) }
                    td { (format!("{:.1} %", queue.dmb * 100.0)) }
                    td { (format!("{:.1} %", queue.held * 100.0)) }
                }
            }
        } }
    }
}

fn latencies(stats: &Stats) -> Markup {
    html! {
        div.scroll { table {
            tr {
                @for head in ["ns", "count", "min", "mean", "p50", "p90", "p99", "p99.9", "max"] {
                    th { (head) }
                }
            }
            @for (name, queue) in stats.queues() {
                @for (step, latency) in queue.latencies() {
                    tr {
                        td { (name) " " (step) } td { (latency.count) }
                        @for ns in [latency.min_ns, latency.mean_ns, latency.p50_ns, latency.p90_ns,
                            latency.p99_ns, latency.p999_ns, latency.max_ns] {
                            td { (format!("{ns:.1}")) }
                        }
                    }
                }
            }
        } }
    }
}
