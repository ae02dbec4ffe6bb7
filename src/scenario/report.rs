//! What a run did: one structure, printed for people, serialized for machines. The same plan gives
//! the same bytes.

#[cfg(feature = "telemetry")]
use crate::telemetry::stats::Stats;
use crate::units::counted;
use serde::Serialize;
use std::fmt;

/// The outcome of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Name of the scenario.
    pub scenario: String,
    /// What it is about.
    pub description: String,
    /// Generation of the device.
    pub arch: String,
    /// Name or file of the timing config.
    pub config: String,
    /// Seed of the random streams.
    pub seed: u64,
    /// Whether every step was done and every expectation held.
    pub passed: bool,
    /// Simulated time in nanoseconds.
    pub time_ns: f64,
    /// Simulated time in UDMA clock cycles.
    pub cycles: u64,
    /// UDMA clock in hertz.
    pub clock_hz: u64,
    /// Data bytes that became visible at their destinations.
    pub bytes: u64,
    /// `bytes` over the simulated time, in 10^9 bytes per second.
    pub gb_per_s: f64,
    /// What the engines did, all together.
    pub totals: Totals,
    /// The steps that were begun; repetitions of one step are one entry.
    pub steps: Vec<StepReport>,
    /// Why the run ended before the last step, if it did.
    pub stopped: Option<String>,
    /// Every expectation in file order; none was checked if the run stopped.
    pub expectations: Vec<ExpectationReport>,
    /// Errors that engines recorded, in words.
    pub errors: Vec<String>,
    /// Faults that were injected, and what noticed them.
    pub faults: Vec<String>,
    /// Interrupts that the host took.
    pub interrupts: Vec<String>,
    /// What the device ignored or could not make sense of, in words.
    pub warnings: Vec<String>,
    /// Registers that nothing models and somebody has touched.
    pub unmodelled_registers: Vec<TouchedRegister>,
    /// Whether the program is race-free (`docs/ordering.md`, "Races"); `None` if nobody asked.
    pub races: Option<RaceVerdict>,
    /// Statistics, if they were asked for.
    #[cfg(feature = "telemetry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<Stats>,
}

/// Whether a program is race-free. That is a property of the program, not of the run: a program with
/// races may well pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum RaceVerdict {
    /// There are no races: no legal timing changes what it does.
    RaceFree,
    /// There are some.
    Racy {
        /// How many.
        races: u64,
    },
    /// Not all of it could be checked, and nothing was found in the rest.
    Unchecked {
        /// Why.
        why: String,
    },
}

/// Counts over all engines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Tx descriptors completed.
    pub tx_descriptors: u64,
    /// Rx descriptors completed.
    pub rx_descriptors: u64,
    /// Packets completed.
    pub packets: u64,
    /// Data bytes read.
    pub bytes_read: u64,
    /// Data bytes written.
    pub bytes_written: u64,
    /// Packets whose DMB suspended their queue.
    pub dmb: u64,
    /// Packets with a write barrier.
    pub write_barriers: u64,
    /// Rx descriptors with strong-ordered writes.
    pub strong_order_writes: u64,
}

/// A register that nothing models and somebody has touched: it holds what was written and does nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TouchedRegister {
    /// Its physical address.
    pub at: String,
    /// The engine or block it belongs to, and its offset there.
    pub name: String,
    /// What it holds.
    pub value: u32,
    /// Host reads.
    pub reads: u64,
    /// Writes of the host and of engines.
    pub writes: u64,
}

/// One host step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepReport {
    /// Its label; of a repeated step, that of the first repetition.
    pub label: Option<String>,
    /// The operation, as the scenario names it.
    pub call: String,
    /// What it worked on; of a repeated step, the first repetition.
    pub detail: String,
    /// Repetitions.
    pub times: u64,
    /// UDMA clock cycle at which it began.
    pub start_cycle: u64,
    /// Cycles until it was done, over all repetitions.
    pub cycles: u64,
    /// Packets that completed meanwhile.
    pub packets: u64,
    /// Data bytes that became visible meanwhile.
    pub bytes: u64,
    /// `bytes` over the time the step took, in 10^9 bytes per second; 0 if it took none.
    pub gb_per_s: f64,
}

/// One expectation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExpectationReport {
    /// What was expected.
    pub expected: String,
    /// Whether it held.
    pub passed: bool,
    /// What was found; for what held, only if it says more than the expectation does.
    pub found: Option<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} on {} (config {}, seed {})",
            self.scenario, self.arch, self.config, self.seed
        )?;
        if !self.description.is_empty() {
            writeln!(f, "{}", self.description)?;
        }
        self.write_steps(f)?;
        self.write_expectations(f)?;
        self.write_totals(f)?;
        #[cfg(feature = "telemetry")]
        if let Some(stats) = &self.stats {
            stats.fmt(f)?;
        }
        Ok(())
    }
}

impl Report {
    fn write_steps(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{:>9} {:>9}  step", "cycle", "took")?;
        for step in &self.steps {
            let mut line = step.call.clone();
            if step.times > 1 {
                line.push_str(&format!(" x{}", step.times));
            }
            line.push_str(&format!("  {}", step.detail));
            if step.times > 1 {
                line.push_str(", ...");
            }
            if let Some(label) = &step.label {
                line.push_str(&format!("  [{label}]"));
            }
            if step.bytes > 0 {
                let (bytes, speed) = (grouped(step.bytes), step.gb_per_s);
                line.push_str(&format!("  ({bytes} bytes, {speed:.2} GB/s)"));
            }
            writeln!(f, "{:>9} {:>9}  {line}", step.start_cycle, step.cycles)?;
        }
        match &self.stopped {
            Some(why) => writeln!(f, "\nSTOPPED  {why}"),
            None => Ok(()),
        }
    }

    fn write_expectations(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.expectations.is_empty() {
            writeln!(f)?;
        }
        for expectation in &self.expectations {
            let verdict = if expectation.passed { "pass" } else { "FAIL" };
            write!(f, "{verdict}  {}", expectation.expected)?;
            match &expectation.found {
                Some(found) if expectation.passed => writeln!(f, ": {found}")?,
                Some(found) => writeln!(f, "\n      {found}")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }

    fn write_totals(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = &self.totals;
        writeln!(f)?;
        writeln!(
            f,
            "time      {:.1} ns, {} cycles at {} MHz",
            self.time_ns,
            grouped(self.cycles),
            self.clock_hz as f64 / 1e6
        )?;
        writeln!(
            f,
            "moved     {} bytes, {:.2} GB/s",
            grouped(self.bytes),
            self.gb_per_s
        )?;
        writeln!(
            f,
            "done      {} Tx and {}, {}",
            totals.tx_descriptors,
            counted(totals.rx_descriptors, "Rx descriptor"),
            counted(totals.packets, "packet")
        )?;
        writeln!(
            f,
            "barriers  {} DMB, {}, {}",
            totals.dmb,
            counted(totals.write_barriers, "write barrier"),
            counted(totals.strong_order_writes, "strong-ordered write")
        )?;
        match &self.races {
            None => {}
            Some(RaceVerdict::RaceFree) => writeln!(f, "races     none: the program is race-free")?,
            Some(RaceVerdict::Racy { races }) => {
                let races = counted(*races, "race");
                writeln!(f, "races     {races}; run `udma-sim check` for details")?;
            }
            Some(RaceVerdict::Unchecked { why }) => writeln!(f, "races     not checked: {why}")?,
        }
        for fault in &self.faults {
            writeln!(f, "fault     {fault}")?;
        }
        for interrupt in &self.interrupts {
            writeln!(f, "interrupt {interrupt}")?;
        }
        for error in &self.errors {
            writeln!(f, "error     {error}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "warning   {warning}")?;
        }
        let registers = &self.unmodelled_registers;
        for register in registers.iter().take(MOST_REGISTERS) {
            let TouchedRegister {
                at, name, value, ..
            } = register;
            writeln!(
                f,
                "register  {name} ({at}) is not modelled; its value is {value:#x}"
            )?;
        }
        if registers.len() > MOST_REGISTERS {
            match registers.len() - MOST_REGISTERS {
                1 => writeln!(f, "register  1 more register is not modelled")?,
                more => writeln!(f, "register  {more} more registers are not modelled")?,
            }
        }
        let held = self.expectations.iter().filter(|e| e.passed).count();
        let all = self.expectations.len();
        let verdict = match (self.passed, &self.stopped) {
            (true, _) => "PASSED",
            (false, None) => "FAILED",
            (false, Some(_)) => "FAILED, stopped before the last step",
        };
        writeln!(f, "\n{verdict}: {held} of {all} expectations held")
    }
}

/// Registers that are not modelled and that the text names one by one; the JSON has them all.
const MOST_REGISTERS: usize = 8;

/// A number with its digits in groups of three: `1,048,576`.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_from_the_right() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_048_576, "1,048,576"),
        ] {
            assert_eq!(grouped(n), text);
        }
    }
}
