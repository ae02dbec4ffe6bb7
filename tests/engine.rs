//! The engine against hand-written rings.

mod common;

use common::{Program, Rig, pattern};
use udma_sim::arch::Arch;
use udma_sim::desc::BarrierMode;

const SRC: u64 = 0x10_0000;
const DST: u64 = 0x20_0000;

#[test]
fn a_copy_arrives() {
    for arch in Arch::ALL {
        for len in [1u32, 4, 31, 32, 33, 255, 256, 257, 4096, 65535, 65536] {
            for (src, dst) in [(SRC, DST), (SRC + 3, DST + 13)] {
                let mut rig = Rig::new(arch);
                let data = pattern(len as usize, 1);
                rig.poke(src, &data);
                let mut program = Program::default();
                program.copy(arch, src, dst, len, BarrierMode::None);
                rig.start(0, 0, &program);
                rig.idle();
                assert_eq!(rig.peek(dst, len as usize), data, "{arch} {len} {src:x}");
                assert_eq!(rig.peek(dst + u64::from(len), 8), [0; 8]);
                assert_eq!(rig.peek(dst - 8, 8), [0; 8]);
                let counters = rig.system.counters();
                assert_eq!(counters.bytes_written, u64::from(len));
                assert_eq!(counters.packets, 1);
            }
        }
    }
}
