//! `udma-sim inspect`: decodes a raw ring dump, one descriptor a line, and says what is malformed
//! in it.

mod record;

use super::refuse;
use clap::ValueEnum;
use record::Ring;
use serde::{Serialize, Serializer};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use udma_sim::arch::Arch;
use udma_sim::arch::regs::Direction;

#[derive(clap::Args)]
pub struct Args {
    /// Ring dump: descriptors of 16 bytes, as in memory
    file: PathBuf,

    /// Type of the ring
    #[arg(long)]
    dir: Dir,

    /// Generation of the device: v2 (sunda), v3 (cayman) or v4 (mariana)
    #[arg(long, default_value_t = Arch::V3)]
    arch: Arch,

    /// Print the output as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Dir {
    /// Tx (m2s): reads sources
    Tx,
    /// Rx (s2m): writes destinations
    Rx,
}

impl From<Dir> for Direction {
    fn from(dir: Dir) -> Direction {
        match dir {
            Dir::Tx => Direction::M2s,
            Dir::Rx => Direction::S2m,
        }
    }
}

/// Exit status: 0 if nothing is malformed, 1 if something is, 2 if the file cannot be read.
pub fn main(args: &Args) -> ExitCode {
    let bytes = match std::fs::read(&args.file) {
        Ok(bytes) => bytes,
        Err(error) => return refuse(format!("cannot read {}: {error}", args.file.display())),
    };
    let ring = Ring::new(&bytes, args.dir.into(), args.arch);
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = if args.json {
        write_json(&ring, &mut out)
    } else {
        write_text(&ring, &mut out)
    };
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            refuse(format!("cannot write the output: {error}"))
        }
        _ if ring.summary().malformed == 0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn write_text(ring: &Ring, out: &mut impl Write) -> io::Result<()> {
    for record in ring.records() {
        writeln!(out, "{record}")?;
    }
    if let Some(unused) = ring.unused() {
        writeln!(out, "{unused}")?;
    }
    for fault in ring.faults() {
        writeln!(out, "!! {fault}")?;
    }
    writeln!(out, "{}", ring.summary())
}

fn write_json(ring: &Ring, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, ring)?;
    writeln!(out)
}

/// A ring as JSON; the records are made as they are written.
impl Serialize for Ring<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Document<'a> {
            dir: &'static str,
            arch: &'static str,
            #[serde(serialize_with = "records")]
            descriptors: &'a Ring<'a>,
            unused_slots: usize,
            faults: Vec<String>,
            #[serde(flatten)]
            summary: record::Summary,
        }

        fn records<S: Serializer>(ring: &Ring, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(ring.records())
        }

        Document {
            dir: self.direction().ring_name(),
            arch: self.arch().name(),
            descriptors: self,
            unused_slots: self.unused().map_or(0, |unused| unused.count),
            faults: self.faults(),
            summary: self.summary(),
        }
        .serialize(serializer)
    }
}
