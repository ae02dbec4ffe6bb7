//! Charts as inline SVG. Every text goes through `maud`, which escapes it.

use super::profile::{PacketSpan, Series};
use crate::arch::{EngineId, QueueId};
use crate::device::StationState;
use crate::sim::{Duration, Instant};
use crate::telemetry::stats::Stats;
use maud::{Markup, html};
use std::collections::BTreeMap;

const WIDTH: f64 = 1000.0;
/// Room for the numbers beside an axis.
const LEFT: f64 = 60.0;
/// And below.
const BOTTOM: f64 = 24.0;
/// Room for names at the left of bars.
const NAMES: f64 = 170.0;
const ROW: f64 = 20.0;

/// A scale from 0 to at least `most`: the end, and the distance of ticks. Round numbers.
fn scale(most: f64) -> (f64, f64) {
    if most <= 0.0 || !most.is_finite() {
        return (1.0, 0.5);
    }
    let decade = 10f64.powf((most / 4.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
    let step = steps.into_iter().find(|step| most / step <= 5.0);
    let step = step.unwrap_or(10.0 * decade);
    ((most / step).ceil() * step, step)
}

/// Ticks of a scale, without the noise of their sums.
fn ticks(end: f64, step: f64) -> impl Iterator<Item = (f64, String)> {
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let count = (end / step).round() as u64;
    (0..=count).map(move |n| {
        let value = n as f64 * step;
        (value, format!("{value:.decimals$}"))
    })
}

/// A unit for times up to `most`, and its length in nanoseconds.
fn unit(most: Duration) -> (&'static str, f64) {
    match most.as_ns_f64() {
        ns if ns >= 2e6 => ("ms", 1e6),
        ns if ns >= 2e3 => ("µs", 1e3),
        _ => ("ns", 1.0),
    }
}

/// Two decimals are enough for a place on the screen.
fn px(value: f64) -> String {
    format!("{value:.2}")
}

/// A frame with time from left to right, the same in every chart: its markup, and where an instant is.
fn time_axis(time: Duration, height: f64) -> (Markup, impl Fn(Instant) -> f64) {
    let (unit, ns) = unit(time);
    let most = time.as_ns_f64() / ns;
    let (end, step) = scale(most);
    let most = if most > 0.0 { most } else { end };
    let x = move |value: f64| NAMES + value / most * (WIDTH - NAMES - 10.0);
    let markup = html! {
        @for (value, label) in ticks(end, step).filter(|(value, _)| *value <= most) {
            line.grid x1=(px(x(value))) x2=(px(x(value))) y1="0" y2=(px(height)) {}
            text.tick x=(px(x(value))) y=(px(height + 16.0)) text-anchor="middle" {
                (label) @if value == 0.0 { " " (unit) }
            }
        }
    };
    (markup, move |at: Instant| x(at.as_ns_f64() / ns))
}

/// Bytes read and written over time, as rates.
pub(super) fn throughput(series: &Series, time: Duration) -> Markup {
    let height = 200.0;
    let stretch = series.stretch;
    let rates = |half: usize| {
        let bytes = series.bytes.iter().map(move |bytes| bytes[half] as f64);
        bytes.map(move |bytes| bytes / stretch.as_ns_f64())
    };
    let most = rates(0).chain(rates(1)).fold(0.0, f64::max);
    let (top, step) = scale(most);
    let y = |rate: f64| height - rate / top * (height - 10.0);
    let (axis, x) = time_axis(time, height);
    let end = Instant::START + time;
    let outline = |half: usize| {
        let mut points = format!("{},{}", px(x(Instant::START)), px(height));
        let mut from = Instant::START;
        for rate in rates(half) {
            let until = (from + stretch).min(end);
            for at in [from, until] {
                points.push_str(&format!(" {},{}", px(x(at)), px(y(rate))));
            }
            from = until;
        }
        points.push_str(&format!(" {},{}", px(x(from)), px(height)));
        points
    };
    html! {
        p.legend { span.key.read {} " read " span.key.write {} " written, GB/s" }
        svg viewBox=(format!("0 0 {WIDTH} {}", height + BOTTOM)) role="img" {
            (axis)
            @for (value, label) in ticks(top, step) {
                line.grid x1=(NAMES) x2=(WIDTH - 10.0) y1=(px(y(value))) y2=(px(y(value))) {}
                text.tick x=(NAMES - 6.0) y=(px(y(value) + 4.0)) text-anchor="end" { (label) }
            }
            polygon.area.read points=(outline(0)) {}
            polygon.area.write points=(outline(1)) {}
        }
    }
}

/// What stations were at: one bar each.
pub(super) fn stations(stats: &Stats) -> Markup {
    let rows: Vec<_> = (stats.engines.iter())
        .flat_map(|engine| {
            engine
                .stations
                .iter()
                .map(move |station| (engine.engine, station))
        })
        .collect();
    let width = WIDTH - NAMES - 10.0;
    let bars = rows.iter().enumerate().map(|(row, (engine, station))| {
        let mut left = 0.0;
        let parts: Vec<_> = (StationState::ALL.iter().rev())
            .map(|state| {
                let ns = station.states_ns.get(state.name()).copied();
                let share = ns.unwrap_or_default() / stats.time_ns.max(1e-3);
                left += share;
                (state.name(), left - share, share)
            })
            .filter(|(_, _, share)| *share > 0.0)
            .collect();
        (
            row as f64 * ROW,
            format!("{} {}", EngineId(*engine), station.station),
            parts,
        )
    });
    html! {
        p.legend {
            @for state in StationState::ALL.iter().rev() {
                span class=(format!("key state-{}", state.name())) {} " " (state.name()) " "
            }
        }
        svg viewBox=(format!("0 0 {WIDTH} {}", rows.len() as f64 * ROW)) role="img" {
            @for (y, name, parts) in bars {
                text.name x=(NAMES - 8.0) y=(px(y + 14.0)) text-anchor="end" { (name) }
                @for (state, left, share) in parts {
                    rect class=(format!("state-{state}")) x=(px(NAMES + left * width)) y=(px(y + 2.0))
                        width=(px(share * width)) height=(ROW - 4.0) {
                        title { (name) " " (state) ": " (format!("{:.1} %", share * 100.0)) }
                    }
                }
            }
        }
    }
}

/// A histogram: upper ends in nanoseconds, with counts.
pub(super) fn histogram(name: &str, bins: &[(f64, u64)]) -> Markup {
    let (width, height) = (480.0, 150.0);
    let most = bins
        .iter()
        .map(|(_, count)| *count)
        .max()
        .unwrap_or_default();
    let bar = (width - LEFT - 10.0) / bins.len().max(1) as f64;
    let y = |count: u64| height - count as f64 / most.max(1) as f64 * (height - 22.0);
    let step = match bins {
        [(first, _), (second, _), ..] => second - first,
        _ => 0.0,
    };
    html! {
        svg.half viewBox=(format!("0 0 {width} {}", height + BOTTOM)) role="img" {
            text.name x=(LEFT) y="12" { (name) }
            text.tick x=(LEFT - 6.0) y=(px(y(most) + 4.0)) text-anchor="end" { (most) }
            text.tick x=(LEFT - 6.0) y=(px(height)) text-anchor="end" { "0" }
            line.grid x1=(LEFT) x2=(width - 10.0) y1=(height) y2=(height) {}
            @for (bin, (end, count)) in bins.iter().enumerate() {
                @if *count > 0 {
                    rect.bar x=(px(LEFT + bin as f64 * bar)) width=(px((bar - 1.0).max(0.5)))
                        y=(px(y(*count).min(height - 1.0))) height=(px((height - y(*count)).max(1.0))) {
                        title { (count) ", " (format!("{:.1} to {end:.1} ns", end - step)) }
                    }
                }
            }
            @if let [(first, _), .., (last, _)] = bins {
                text.tick x=(LEFT) y=(px(height + 16.0)) { (format!("{:.1} ns", first - step)) }
                text.tick x=(width - 10.0) y=(px(height + 16.0)) text-anchor="end" { (format!("{last:.1} ns")) }
            }
        }
    }
}

/// How busy each channel was: one bar each, in columns.
pub(super) fn channels(stats: &Stats) -> Markup {
    let columns = match stats.channels.len() {
        0..=8 => 1,
        9..=32 => 2,
        _ => 4,
    };
    let rows = stats.channels.len().div_ceil(columns).max(1);
    let column = WIDTH / columns as f64;
    let names = NAMES.min(column * 0.62);
    let most = (stats.channels.iter()).map(|channel| channel.utilisation);
    let (end, _) = scale(most.fold(0.0, f64::max) * 100.0);
    let width = column - names - 46.0;
    let bars = stats.channels.iter().enumerate().map(|(n, channel)| {
        let (x, y) = ((n / rows) as f64 * column + names, (n % rows) as f64 * ROW);
        let moved = (channel.bytes_read + channel.bytes_written).max(1) as f64;
        let bar = channel.utilisation * 100.0 / end * width;
        (channel, x, y, bar * channel.bytes_read as f64 / moved, bar)
    });
    html! {
        p.legend {
            span.key.read {} " read " span.key.write {} " written; a full bar is "
            (format!("{end} % of the time"))
        }
        svg viewBox=(format!("0 0 {WIDTH} {}", rows as f64 * ROW)) role="img" {
            @for (channel, x, y, read, bar) in bars {
                text.name x=(px(x - 6.0)) y=(px(y + 14.0)) text-anchor="end" { (channel.channel) }
                g {
                    title {
                        (channel.channel) ": " (channel.bytes_read) " bytes read, "
                        (channel.bytes_written) " written, " (channel.gb_per_s) " GB/s"
                    }
                    rect.read x=(px(x)) y=(px(y + 2.0)) width=(px(read)) height=(ROW - 4.0) {}
                    rect.write x=(px(x + read)) y=(px(y + 2.0)) width=(px(bar - read)) height=(ROW - 4.0) {}
                    text.tick x=(px(x + bar + 4.0)) y=(px(y + 14.0)) {
                        (format!("{:.1} %", channel.utilisation * 100.0))
                    }
                }
            }
        }
    }
}

/// Packets over time: a row for each queue.
pub(super) fn packets(packets: &[PacketSpan], time: Duration) -> Markup {
    let mut rows: BTreeMap<(EngineId, QueueId), Vec<&PacketSpan>> = BTreeMap::new();
    for packet in packets {
        let row = rows.entry((packet.engine, packet.queue)).or_default();
        row.push(packet);
    }
    let height = rows.len() as f64 * ROW;
    let (axis, x) = time_axis(time, height);
    html! {
        p.legend {
            span.key.copy {} " copy " span.key.computation {} " computation "
            span.key.dmb {} " with a DMB"
        }
        svg viewBox=(format!("0 0 {WIDTH} {}", height + BOTTOM)) role="img" {
            (axis)
            @for (row, ((engine, queue), packets)) in rows.iter().enumerate() {
                @let y = row as f64 * ROW;
                text.name x=(NAMES - 8.0) y=(px(y + 14.0)) text-anchor="end" {
                    (engine) " queue " (queue)
                }
                @for (n, packet) in packets.iter().enumerate() {
                    // Packets of a queue overlap: every other one is drawn lower.
                    @let y = y + 2.0 + (n % 2) as f64 * 8.0;
                    rect class=(packet.kind) x=(px(x(packet.span.0))) y=(px(y)) height="8"
                        width=(px((x(packet.span.1) - x(packet.span.0)).max(0.5))) {
                        title {
                            "packet " (packet.number) ", " (packet.bytes) " bytes, "
                            (format!("{:.1}", packet.span.0.as_ns_f64())) " to "
                            (format!("{:.1} ns", packet.span.1.as_ns_f64()))
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn scales_reach_and_are_round(most in 1e-6f64..1e12) {
            let (end, step) = scale(most);
            prop_assert!(end >= most * 0.999_999 && end <= most * 1.5, "{} {}", most, end);
            let ticks: Vec<_> = ticks(end, step).collect();
            prop_assert!((2..=7).contains(&ticks.len()));
            for (value, label) in ticks {
                prop_assert!((label.parse::<f64>().unwrap() - value).abs() <= step * 1e-6);
            }
        }
    }
}
