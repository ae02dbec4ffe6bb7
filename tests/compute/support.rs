//! Packets written by hand, planned and executed.

use udma_sim::arch::Arch;
use udma_sim::desc::Descriptor;
use udma_sim::device::compute::{Fp8, Plan, QueueState, Reason, Refusal, Setup, plan};

pub const META: u32 = 0x0080_0000;
/// A data descriptor of 64 bytes; FIRST and LAST do not matter here.
pub const DATA: u32 = 64;

pub fn setup(arch: Arch) -> Setup {
    Setup {
        spec: arch.spec(),
        fp8: Fp8::DEFAULT,
        packet_bytes: 0xfffff,
    }
}

pub fn ring(words: &[[u32; 4]]) -> Vec<Descriptor> {
    words.iter().map(|&words| Descriptor { words }).collect()
}

pub fn plan_of(arch: Arch, descs: &[Descriptor]) -> Plan {
    plan(descs, &setup(arch)).unwrap()
}

pub fn execute(plan: &Plan, sources: &[u8], state: &mut QueueState) -> Vec<u8> {
    let mut result = vec![0xee; 3];
    plan.execute(sources, state, &mut result).unwrap();
    result
}

/// What a packet of these words is refused for.
pub fn refused(arch: Arch, words: &[[u32; 4]]) -> (usize, Reason) {
    let Refusal { desc, reason } = plan(&ring(words), &setup(arch)).unwrap_err();
    (desc, reason)
}

pub fn bf16(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| ((value.to_bits() >> 16) as u16).to_le_bytes())
        .collect()
}

pub fn fp32(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}
