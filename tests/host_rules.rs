//! The rules of the vring stack, one test each, named after the rule and grouped as the runtime's own
//! account of it is: model, allocation, copies, packets, edits, templates, dump, producers.

use std::collections::BTreeMap;
use udma_sim::arch::regs::Direction;
use udma_sim::arch::{Arch, EngineId};
use udma_sim::desc::*;
use udma_sim::host::*;
use udma_sim::units::Addr;

const SRC: Addr = Addr(0x1_0000_0000);
const DST: Addr = Addr(0x2_0000_0000);

fn vring(arch: Arch) -> Vring {
    Vring::new(arch, "set_3").unwrap()
}

fn tx(vring: &Vring) -> Vec<TxDesc> {
    vring
        .tx()
        .runs()
        .flatten()
        .map(|desc| TxDesc::from(*desc))
        .collect()
}

fn rx(vring: &Vring) -> Vec<RxDesc> {
    vring
        .rx()
        .runs()
        .flatten()
        .map(|desc| RxDesc::from(*desc))
        .collect()
}

fn buffers(lens: &[u64]) -> Vec<Buffer> {
    let mut at = 0x1000;
    let buffer = |len: &u64| {
        at += len;
        Buffer {
            at: Addr(at - len),
            len: *len,
        }
    };
    lens.iter().map(buffer).collect()
}

/// Memory that is written and read, registers that are not there.
#[derive(Default)]
struct Memory(BTreeMap<u64, u8>, usize);

impl Bus for Memory {
    fn read_mem(&mut self, at: Addr, out: &mut [u8]) -> Result<(), BusError> {
        for (byte, at) in out.iter_mut().zip(at.0..) {
            *byte = self.0.get(&at).copied().unwrap_or(0);
        }
        Ok(())
    }

    fn write_mem(&mut self, at: Addr, bytes: &[u8]) -> Result<(), BusError> {
        self.1 += 1;
        self.0.extend((at.0..).zip(bytes.iter().copied()));
        Ok(())
    }

    fn read_reg(&mut self, at: Addr) -> Result<u32, BusError> {
        Err(BusError {
            at,
            len: 4,
            reason: BusReason::NoRegister,
        })
    }

    fn write_reg(&mut self, at: Addr, _value: u32) -> Result<(), BusError> {
        Err(BusError {
            at,
            len: 4,
            reason: BusReason::NoRegister,
        })
    }
}

fn prings(descs: u32) -> (Pring, Pring) {
    (
        Pring::new(Direction::M2s, Addr(0x10_0000), descs).unwrap(),
        Pring::new(Direction::S2m, Addr(0x20_0000), descs).unwrap(),
    )
}

fn slot(bus: &mut Memory, ring: u64, slot: u64) -> [u32; 4] {
    let mut bytes = [0; 16];
    bus.read_mem(Addr(ring + 16 * slot), &mut bytes).unwrap();
    Descriptor::from_bytes(bytes).words
}

mod model {
    use super::*;

    #[test]
    fn a_page_holds_65536_descriptors_in_one_mebibyte() {
        assert_eq!(
            (PAGE_DESCS, PAGE_DESCS as usize * DESC_BYTES),
            (65536, 0x10_0000)
        );
    }

    #[test]
    fn a_descriptor_index_splits_as_page_and_in_page() {
        let mut vring = vring(Arch::V3);
        for n in 0..PAGE_DESCS as u64 + 2 {
            vring.add_desc_transfer(Addr(n), DST, 1).unwrap();
        }
        for idx in [0, 65535, 65536, 65537] {
            let page = vring.tx().find_page_by_idx(idx >> 16).unwrap();
            let desc = TxDesc::from(page[(idx & 0xffff) as usize]);
            assert_eq!(desc.buf_ptr, Addr(idx.into()));
            assert_eq!(vring.tx().get(idx), Some(&page[(idx & 0xffff) as usize]));
        }
    }

    #[test]
    fn a_set_has_16_vrings_named_set_n_and_stamped_with_stochastic_rounding() {
        let set = VringSet::allocate(Arch::V3, "drs", 16, true, 5).unwrap();
        assert_eq!((set.count(), set.tile_idx()), (16, 5));
        for (n, vring) in set.vrings().iter().enumerate() {
            assert_eq!(vring.name(), format!("drs_{n}"));
            assert!(vring.stochastic_rounding_en());
        }
        assert!(VringSet::allocate(Arch::V3, "drs", 17, true, 5).is_err());
    }

    #[test]
    fn a_vring_is_host_memory_until_a_dump() {
        let mut bus = Memory::default();
        let mut vring = vring(Arch::V3);
        vring.add_desc_transfer(SRC, DST, 1 << 20).unwrap();
        vring.pack_descs(0, 16, 1 << 19, 16).unwrap();
        assert_eq!(bus.1, 0);
        let (mut tx, mut rx) = prings(32);
        vring.dump_to_pring(&mut bus, &mut tx, &mut rx).unwrap();
        assert!(bus.1 > 0);
    }
}

mod allocation {
    use super::*;

    #[test]
    fn the_cap_is_16777200_descriptors_per_half_and_there_is_no_257th_page() {
        let mut vring = vring(Arch::V3);
        let all = u64::from(MAX_VRING_DESCS) * 65536;
        assert!(vring.add_desc_transfer(Addr(0), Addr(0), all + 1).is_err());
        assert_eq!(vring.tx().used_desc_count(), 0);
        // The last that fits is index 0xffffef.
        vring
            .add_desc_transfer(Addr(0), Addr(0), all - 65536)
            .unwrap();
        vring.add_desc_transfer(Addr(0), Addr(0), 1).unwrap();
        assert_eq!(vring.tx().used_desc_count(), 0xff_fff0);
        let refused = vring.add_desc_transfer(Addr(0), Addr(0), 1).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "Failed to add descriptor 1/1 to vring set_3: Descriptor limit reached. \
             Descriptors in vring 16777200, Max allowed 16777200"
        );
        assert_eq!(vring.tx().runs().count(), 256);
    }

    #[test]
    fn a_page_is_added_only_when_the_in_page_index_wraps() {
        let mut vring = vring(Arch::V3);
        vring
            .add_desc_transfer(Addr(0), Addr(0), 65536 * 65536)
            .unwrap();
        assert_eq!(vring.rx().runs().count(), 1);
        vring.add_desc_transfer(Addr(0), Addr(0), 1).unwrap();
        assert_eq!(vring.rx().runs().count(), 2);
    }
}

mod copies {
    use super::*;

    #[test]
    fn a_transfer_is_cut_into_chunks_of_at_most_64_kib_a_pair_each() {
        let mut vring = vring(Arch::V3);
        vring.add_desc_transfer(SRC, DST, 2 * 65536 + 1).unwrap();
        let lens: Vec<u32> = tx(&vring).iter().map(|tx| tx.len_ctrl.byte_len()).collect();
        assert_eq!(lens, [65536, 65536, 1]);
        assert_eq!(tx(&vring)[0].len_ctrl.length(), 0, "64 KiB is stored as 0");
        for (n, (tx, rx)) in tx(&vring).iter().zip(rx(&vring)).enumerate() {
            let done = 65536 * n as u64;
            assert_eq!((tx.buf_ptr.0, rx.buf1_ptr.0), (SRC.0 + done, DST.0 + done));
        }
    }

    #[test]
    fn dmb_is_on_the_final_chunk_only_and_excludes_sow() {
        for arch in Arch::ALL {
            let mut vring = vring(arch);
            vring.add_desc_transfer(SRC, DST, 3 * 65536).unwrap();
            let sow = arch != Arch::V2;
            for (n, (tx, rx)) in tx(&vring).iter().zip(rx(&vring)).enumerate() {
                assert_eq!(tx.len_ctrl.dmb(), n == 2 && !sow, "{arch} {n}");
                assert_eq!(rx.len_ctrl.strong_order_wr(), n == 2 && sow, "{arch} {n}");
            }
        }
    }

    #[test]
    fn ex_forces_the_dmb_path() {
        for arch in Arch::ALL {
            let mut vring = vring(arch);
            vring.add_desc_transfer_ex(SRC, DST, 65537).unwrap();
            let dmb: Vec<bool> = tx(&vring).iter().map(|tx| tx.len_ctrl.dmb()).collect();
            assert_eq!(dmb, [false, true]);
            assert!(rx(&vring).iter().all(|rx| !rx.len_ctrl.strong_order_wr()));
        }
    }

    #[test]
    fn totals_grow_by_the_chunks() {
        let mut vring = vring(Arch::V2);
        vring.add_desc_transfer(SRC, DST, 100_000).unwrap();
        vring.add_desc_transfer(SRC, DST, 1).unwrap();
        assert_eq!(
            (vring.total_tx_size(), vring.total_rx_size()),
            (100_001, 100_001)
        );
    }

    #[test]
    fn a_failure_names_the_descriptor_and_leaves_the_vring_as_it_was() {
        let mut vring = vring(Arch::V2);
        let most = u64::from(MAX_VRING_DESCS) * 65536;
        vring
            .add_desc_transfer(Addr(0), Addr(0), most - 65536)
            .unwrap();
        let refused = vring
            .add_desc_transfer(Addr(0), Addr(0), 3 * 65536)
            .unwrap_err();
        assert!(
            refused
                .to_string()
                .starts_with("Failed to add descriptor 2/3 to vring set_3")
        );
        assert_eq!(vring.tx().used_desc_count(), MAX_VRING_DESCS - 1);
        assert_eq!(vring.total_tx_size(), most - 65536);
    }

    #[test]
    fn events_and_semaphores_are_4_byte_copies_in_the_default_order() {
        for arch in Arch::ALL {
            let mut vring = vring(arch);
            vring.add_desc_event(0, 1, EventAction::Set).unwrap();
            vring.add_desc_event(0, 1, EventAction::Clear).unwrap();
            vring.add_desc_semaphore_inc(0, 1).unwrap();
            for (tx, rx) in tx(&vring).iter().zip(rx(&vring)) {
                assert_eq!((tx.len_ctrl.byte_len(), rx.len_ctrl.byte_len()), (4, 4));
                assert_eq!(tx.len_ctrl.dmb(), arch == Arch::V2);
                assert_eq!(rx.len_ctrl.strong_order_wr(), arch != Arch::V2);
            }
        }
    }

    #[test]
    fn semaphore_inc_from_sb_is_cayman_only_and_reads_229372_into_a_partition() {
        for arch in Arch::ALL {
            let added = vring(arch).add_desc_semaphore_inc_from_sb(0, EngineId(0), 0, 0);
            assert_eq!(added.is_ok(), arch == Arch::V3);
        }
        for engine in 0..40 {
            let at = sb_increment_word(Arch::V3, 0, EngineId(engine)).unwrap();
            let offset = at.0 - 0x20_0000_0000;
            assert_eq!(offset & 0x3_ffff, 229_372);
            let again = sb_increment_word(Arch::V3, 0, EngineId(engine & 15)).unwrap();
            assert_eq!(at, again, "only the low four bits of the engine count");
        }
    }
}

mod packet_builders {
    use super::*;

    #[test]
    fn the_ring_id_is_forced_to_1() {
        let mut vring = vring(Arch::V3);
        let ends = buffers(&[64]);
        vring.add_desc_transfer(SRC, DST, 64).unwrap();
        vring
            .add_dma_packet(&CopyPacket::new(&ends, &ends))
            .unwrap();
        vring
            .add_dma_packet_cce(KbinOp::Add, &CcePacket::new(&[SRC], &[DST], 8, DType::Fp32))
            .unwrap();
        vring.add_set_seed_packet(1, SRC).unwrap();
        for half in [vring.tx(), vring.rx()] {
            assert!(
                half.runs()
                    .flatten()
                    .all(|desc| desc.len_ctrl().ring_id() == RingId::FIRST_LAP)
            );
        }
    }

    #[test]
    fn a_packet_runs_from_first_over_concat_to_last() {
        let mut vring = vring(Arch::V2);
        let sources = buffers(&[8, 8, 8, 8]);
        vring
            .add_dma_packet(&CopyPacket::new(&sources, &buffers(&[32])))
            .unwrap();
        let bits: Vec<_> = tx(&vring)
            .iter()
            .map(|tx| {
                (
                    tx.len_ctrl.first(),
                    tx.len_ctrl.concat(),
                    tx.len_ctrl.last(),
                )
            })
            .collect();
        assert_eq!(
            bits,
            [
                (true, true, false),
                (false, true, false),
                (false, true, false),
                (false, false, true)
            ]
        );
    }

    #[test]
    fn the_counts_of_both_halves_are_returned() {
        let mut vring = vring(Arch::V3);
        let counts = vring
            .add_dma_packet_v2(
                0,
                &CopyPacket::new(&buffers(&[65536 + 8]), &buffers(&[8, 65536])),
            )
            .unwrap();
        assert_eq!(counts, PacketCounts { tx: 2, rx: 2 });
    }

    #[test]
    fn a_packet_has_at_most_128_tx_and_rx_on_v2_and_65_and_60_from_v3_on() {
        for (arch, most_tx, most_rx) in
            [(Arch::V2, 128, 128), (Arch::V3, 65, 60), (Arch::V4, 65, 60)]
        {
            let add = |sources: usize, destinations: usize| {
                let total = 8 * sources.max(destinations) as u64;
                let many = |n: usize| match n {
                    1 => buffers(&[total]),
                    n => buffers(&vec![8; n]),
                };
                let (sources, destinations) = (many(sources), many(destinations));
                vring(arch).add_dma_packet(&CopyPacket::new(&sources, &destinations))
            };
            assert!(
                add(most_tx, 1).is_ok() && add(most_tx + 1, 1).is_err(),
                "{arch}"
            );
            assert!(
                add(1, most_rx).is_ok() && add(1, most_rx + 1).is_err(),
                "{arch}"
            );
        }
    }

    #[test]
    fn a_refused_packet_says_which_vring() {
        let refused = vring(Arch::V3)
            .add_dma_packet(&CopyPacket::new(&buffers(&[8]), &buffers(&[9])))
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "Failed to build packet for vring set_3: the packet writes 8 bytes, but the destinations have 9"
        );
    }

    #[test]
    fn replication_is_refused_on_v2_and_not_a_silent_fallback() {
        let packet = CcePacket::new(&[SRC], &[DST, SRC], 8, DType::Fp32);
        let mut v2 = vring(Arch::V2);
        let refused = v2.add_dma_packet_cce(KbinOp::Add, &packet).unwrap_err();
        assert!(
            refused
                .to_string()
                .ends_with("CCE replication not supported for v1/v2 archs")
        );
        assert_eq!(v2.rx().used_desc_count(), 0);
        let counts = vring(Arch::V3)
            .add_dma_packet_cce(KbinOp::Add, &packet)
            .unwrap();
        assert_eq!(counts.rx, 2);
    }

    #[test]
    fn fma_needs_cce_info_and_an_fp32_scale() {
        let mut packet = CcePacket::new(&[SRC], &[DST], 8, DType::Fp32);
        let add = |packet: &CcePacket| vring(Arch::V3).add_dma_packet_cce(KbinOp::Fma, packet);
        assert!(matches!(
            add(&packet),
            Err(VringError::Cce {
                source: CceError::NoInfo,
                ..
            })
        ));
        let mut info = CceInfo::scaled(&[2.0]);
        packet.cce_info = Some(info);
        assert!(add(&packet).is_ok());
        info.scale_dtype = DType::Fp16;
        packet.cce_info = Some(info);
        let refused = add(&packet);
        assert!(matches!(
            refused,
            Err(VringError::Cce {
                source: CceError::Rule(CceRule::ScaleDtype(Some(DType::Fp16))),
                ..
            })
        ));
    }

    #[test]
    fn unsupported_ops_are_named() {
        let packet = CcePacket::new(&[SRC], &[DST], 8, DType::Fp32);
        for op in [CceType::Ext, CceType::Gce, CceType::Reserved(6)] {
            let refused = vring(Arch::V3)
                .add_dma_packet_cce_int(op, &packet)
                .unwrap_err();
            let number = op.into_bits();
            assert_eq!(
                refused.to_string(),
                format!(
                    "Failed to add CCE {number} packet to vring set_3: unsupported op! ({number})"
                )
            );
        }
    }

    #[test]
    fn a_set_seed_packet_is_an_add_led_by_the_seed() {
        let mut vring = vring(Arch::V3);
        vring.add_set_seed_packet(0xdead_beef, SRC).unwrap();
        let lead = TxMetaDesc::from(*vring.tx().get(0).unwrap());
        let word = ComputeMetaWord::decode(lead.meta_ctrl.into_bits());
        assert_eq!((word.op, lead.meta2), (MetaOp::SeedInit, 0xdead_beef));
        assert!(matches!(
            OpWord::decode(tx(&vring)[1].meta_ctrl),
            OpWord::Add(_)
        ));
    }

    #[test]
    fn cce_sizes_are_accounted() {
        let mut vring = vring(Arch::V3);
        let packet = CcePacket::new(&[SRC, DST, SRC], &[DST, SRC], 16, DType::Bfloat16);
        vring.add_dma_packet_cce(KbinOp::Max, &packet).unwrap();
        assert_eq!((vring.total_tx_size(), vring.total_rx_size()), (96, 64));
    }

    #[test]
    fn there_are_12_permutations_and_element_sizes_1_to_8() {
        assert_eq!(Permutation::all().count(), 12);
        for name in ["WZXY", "WXZY", "XYWZ"] {
            assert!(Permutation::from_name(name).is_some());
        }
        assert_eq!(Permutation::from_name("WXYZ"), None);
        for (permutation, element_bytes) in Permutation::all()
            .flat_map(|permutation| (0..10).map(move |bytes| (permutation, bytes)))
        {
            let len = u64::from(element_bytes) * 24;
            let packet = TransposePacket {
                source: Buffer { at: SRC, len },
                destination: Buffer { at: DST, len },
                dims: TransposeDims([1, 2, 3, 4]),
                element_bytes,
                permutation,
            };
            let added = vring(Arch::V2).add_dma_packet_transpose(&packet);
            assert_eq!(added.is_ok(), (1..=8).contains(&element_bytes));
        }
    }

    #[test]
    fn the_transpose_builder_goes_by_arch() {
        let packet = TransposePacket {
            source: Buffer { at: SRC, len: 512 },
            destination: Buffer { at: DST, len: 512 },
            dims: TransposeDims([1, 16, 16, 1]),
            element_bytes: 2,
            permutation: Permutation::from_name("WYXZ").unwrap(),
        };
        assert!(vring(Arch::V2).add_dma_packet_transpose(&packet).is_ok());
        for arch in [Arch::V3, Arch::V4] {
            let refused = vring(arch).add_dma_packet_transpose(&packet).unwrap_err();
            assert!(refused.to_string().contains("is not in a State Buffer"));
        }
    }

    #[test]
    fn a_transpose_flush_is_refused_on_v2() {
        let refused = vring(Arch::V2)
            .add_dma_packet_transpose_flush(0)
            .unwrap_err();
        assert!(
            refused
                .to_string()
                .ends_with("v2 arch does not support transpose flush")
        );
        for arch in [Arch::V3, Arch::V4] {
            assert!(vring(arch).add_dma_packet_transpose_flush(0).is_ok());
        }
    }
}

mod edits {
    use super::*;

    fn singles(arch: Arch, count: u64) -> Vring {
        let mut vring = vring(arch);
        for n in 0..count {
            let (src, dst) = (Addr(SRC.0 + 64 * n), Addr(DST.0 + 64 * n));
            vring
                .add_desc_transfer_with_barrier(src, dst, 64, BarrierMode::None)
                .unwrap();
        }
        vring
    }

    #[test]
    fn packing_opens_on_first_chains_by_concat_and_closes_on_overflow_or_end() {
        let mut vring = singles(Arch::V3, 5);
        assert_eq!(vring.pack_descs(0, 5, 128, 5), Ok(-2));
        let bits: Vec<u32> = tx(&vring)
            .iter()
            .map(|tx| tx.len_ctrl.into_bits() >> 24)
            .collect();
        assert_eq!(bits, [0x85, 0x09, 0x85, 0x09, 0x0d]);
    }

    #[test]
    fn packing_returns_the_packets_after_less_those_before() {
        let mut vring = singles(Arch::V2, 130);
        assert_eq!(vring.pack_descs(0, 130, 1 << 20, 130), Ok(2 - 130));
        assert_eq!(vring.pack_descs(0, 130, 1 << 20, 2), Ok(0));
        assert_eq!(vring.pack_descs(0, 130, 64, 2), Ok(128));
    }

    #[test]
    fn a_window_outside_the_vring_finds_no_page() {
        let refused = singles(Arch::V2, 3)
            .pack_descs(1, 4, 1 << 20, 0)
            .unwrap_err();
        assert!(refused.to_string().contains("Couldn't find cur_page"));
    }

    #[test]
    fn dmb_on_the_last_packet_is_a_no_op_where_sow_exists() {
        for arch in Arch::ALL {
            let mut vring = singles(arch, 2);
            vring.pack_descs(0, 2, 1 << 20, 2).unwrap();
            vring.set_dmb_on_last_packet().unwrap();
            let dmb: Vec<bool> = tx(&vring).iter().map(|tx| tx.len_ctrl.dmb()).collect();
            assert_eq!(dmb, [arch == Arch::V2, false]);
        }
    }

    #[test]
    fn an_embedded_update_needs_the_arch_the_setting_a_descriptor_and_a_clear_bit_31() {
        for arch in Arch::ALL {
            let mut vring = vring(arch);
            assert!(!vring.should_emb_sem_update(true), "no descriptor");
            vring.add_desc_transfer(SRC, DST, 64).unwrap();
            assert!(!vring.should_emb_sem_update(false), "not enabled");
            assert_eq!(vring.should_emb_sem_update(true), arch == Arch::V4);
            let set = vring.set_embedded_semaphore_inc_on_last_desc(1, 2, false);
            assert_eq!(set.is_ok(), arch == Arch::V4);
            assert!(
                !vring.should_emb_sem_update(true),
                "bit 31 is set, or no arch for it"
            );
        }
    }

    #[test]
    fn the_blob_is_set_sow_0x0100_csr_index_semaphore() {
        let blob = EmbeddedSemaphore {
            set_sow: true,
            csr_index: 5,
            semaphore: 0x0102,
        }
        .to_blob();
        assert_eq!(blob, [1, 0x00, 0x01, 5, 0x02, 0x01]);
    }

    #[test]
    fn addresses_in_base_to_base_plus_size_move_by_new_base_less_base() {
        let mut vring = singles(Arch::V3, 4);
        let moved = vring
            .addr_rewrite(Addr(SRC.0 + 64), 128, Addr(0x9000))
            .unwrap();
        assert_eq!(moved, 2);
        let sources: Vec<u64> = tx(&vring).iter().map(|tx| tx.buf_ptr.0).collect();
        assert_eq!(sources, [SRC.0, 0x9000, 0x9040, SRC.0 + 192]);
    }
}

mod templates {
    use super::*;

    #[test]
    fn bit_61_marks_bits_54_to_36_name_and_bits_35_to_0_offset() {
        let symbol = TemplatePtr::symbol(524_287, 68_719_476_735)
            .unwrap()
            .into_bits();
        assert_eq!(symbol >> 61 & 1, 1);
        assert_eq!(symbol >> 36 & 0x7_ffff, 524_287);
        assert_eq!(symbol & 0xf_ffff_ffff, 68_719_476_735);
        assert!(TemplatePtr::symbol(524_288, 0).is_err());
        assert!(TemplatePtr::symbol(0, 68_719_476_736).is_err());
    }

    #[test]
    fn the_new_pointer_is_the_tensors_address_plus_the_offset() {
        let mut template = Vring::new_template(Arch::V3, "t_0", 1).unwrap();
        let symbol = TemplatePtr::symbol(1, 0x40).unwrap();
        template.add_desc_transfer(SRC, symbol.into(), 64).unwrap();
        let (mut names, mut tensors) = (MemRefTable::default(), TensorSet::default());
        names.insert(1, "x");
        tensors.insert(
            "x",
            Tensor {
                pa: Addr(0x8000),
                size: 0x80,
            },
        );
        let ring = template.build_from_template(&names, &tensors).unwrap();
        assert_eq!(
            (tx(&ring)[0].buf_ptr, rx(&ring)[0].buf1_ptr),
            (SRC, Addr(0x8040))
        );
    }

    #[test]
    fn a_missing_tensor_is_named() {
        let mut template = Vring::new_template(Arch::V3, "t_0", 1).unwrap();
        template
            .add_desc_transfer(SRC, TemplatePtr::symbol(1, 0).unwrap().into(), 64)
            .unwrap();
        let mut names = MemRefTable::default();
        names.insert(1, "kv_cache");
        let refused = template
            .build_from_template(&names, &TensorSet::default())
            .unwrap_err();
        assert!(
            refused
                .to_string()
                .ends_with("Failed to find tensor kv_cache in tensor set")
        );
    }

    #[test]
    fn a_var_id_is_at_most_max_var_id() {
        let mut template = Vring::new_template(Arch::V3, "t_0", 7).unwrap();
        let mut add = |var_id| {
            let symbol = TemplatePtr::symbol(var_id, 0).unwrap();
            template.add_desc_transfer(SRC, symbol.into(), 64)
        };
        assert!(add(7).is_ok());
        assert!(matches!(
            add(8),
            Err(VringError::VarId {
                var_id: 8,
                max_var_id: 7,
                ..
            })
        ));
    }
}

mod dump {
    use super::*;

    fn three() -> Vring {
        let mut vring = vring(Arch::V3);
        vring.add_desc_transfer(SRC, DST, 3 * 65536).unwrap();
        vring
    }

    fn padded(tx: u32, rx: u32) -> DumpOptions {
        DumpOptions {
            tx_padded: Some(tx),
            rx_padded: Some(rx),
            ..DumpOptions::default()
        }
    }

    #[test]
    fn the_pring_must_be_of_its_type_long_enough_and_bound() {
        let mut vring = three();
        let mut bus = Memory::default();
        let (tx, rx) = prings(32);
        let invalid = Pring::default();
        let unbound = Pring::unbound(Direction::M2s, 32).unwrap();
        for mut pring in [rx, invalid, unbound] {
            let options = DumpOptions::default();
            let refused = vring.dump_half_to_pring(&mut bus, Direction::M2s, &mut pring, options);
            assert!(matches!(refused, Err(DumpError::Pring { half: "tx", .. })));
        }
        let mut tx = tx;
        let refused = vring.dump_half_to_pring(&mut bus, Direction::M2s, &mut tx, padded(33, 0));
        assert!(matches!(
            refused,
            Err(DumpError::Pring {
                source: PringError::TooSmall { .. },
                ..
            })
        ));
        assert_eq!((bus.1, tx.used_desc_count()), (0, 0));
    }

    #[test]
    fn padding_below_the_real_count_is_refused() {
        let (mut tx, mut rx) = prings(32);
        let refused = three()
            .dump_to_pring_with(&mut Memory::default(), &mut tx, &mut rx, padded(2, 3))
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "Failed to pad vring set_3 tx from 3 descriptors to 2 descriptors"
        );
    }

    #[test]
    fn the_rest_is_4_byte_copies_onto_themselves_and_used_ends_as_padded() {
        let mut bus = Memory::default();
        let (mut tx, mut rx) = prings(32);
        three()
            .dump_to_pring_with(&mut bus, &mut tx, &mut rx, padded(6, 5))
            .unwrap();
        assert_eq!((tx.used_desc_count(), rx.used_desc_count()), (6, 5));
        let pad = pad_scratch(Arch::V3).0;
        for n in 3..6 {
            let words = slot(&mut bus, 0x10_0000, n);
            assert_eq!(
                words,
                [0x0d00_0004, 0x0108_0003, pad as u32, (pad >> 32) as u32]
            );
        }
        assert_eq!(slot(&mut bus, 0x20_0000, 4)[2], pad as u32);
        assert_eq!(slot(&mut bus, 0x10_0000, 6), [0; 4]);
    }

    #[test]
    fn a_plain_dump_pads_nothing() {
        let mut bus = Memory::default();
        let (mut tx, mut rx) = prings(32);
        three().dump_to_pring(&mut bus, &mut tx, &mut rx).unwrap();
        assert_eq!((tx.used_desc_count(), rx.used_desc_count()), (3, 3));
        assert_eq!(slot(&mut bus, 0x20_0000, 3), [0; 4]);
    }

    #[test]
    fn free_on_dump_frees_what_was_dumped() {
        let mut bus = Memory::default();
        let mut vring = three();
        let (mut tx, mut rx) = prings(32);
        let options = DumpOptions {
            free_on_dump: true,
            ..padded(3, 3)
        };
        vring
            .dump_to_pring_with(&mut bus, &mut tx, &mut rx, options)
            .unwrap();
        assert_eq!(
            (vring.tx().used_desc_count(), vring.rx().used_desc_count()),
            (0, 0)
        );
        assert_eq!(vring.total_tx_size(), 3 * 65536);
    }

    #[test]
    fn rings_from_a_chunk_start_on_256_bytes() {
        let mut chunk = MemChunk::new(Addr(0x1234), 0x1000).unwrap();
        for _ in 0..3 {
            let pring = Pring::alloc_from_memchunk(Direction::M2s, 40, &mut chunk).unwrap();
            assert_eq!(pring.base().unwrap().0 % 256, 0);
            assert_eq!(pring.allocated_desc_count(), 48);
        }
    }
}

mod producers {
    use super::*;

    #[test]
    fn one_pseudo_copy_becomes_one_transfer() {
        let mut translated = vring(Arch::V2);
        let copy = PseudoCopy::Linear {
            src: SRC,
            dst: DST,
            bytes: 70_000,
        };
        assert_eq!(translated.translate_pseudo_dma(&[copy]), Ok(1));
        let mut plain = vring(Arch::V2);
        plain.add_desc_transfer(SRC, DST, 70_000).unwrap();
        assert_eq!(tx(&translated), tx(&plain));
        assert_eq!(rx(&translated), rx(&plain));
    }

    #[test]
    fn append_descs_dispatches_by_kind() {
        let ends = buffers(&[64]);
        let copy = CopyPacket::new(&ends, &ends);
        let cce = CcePacket::new(&[SRC], &[DST], 8, DType::Fp32);
        let mut appended = vring(Arch::V3);
        let ops = [
            DmaOp::Copy(copy.clone()),
            DmaOp::Cce(KbinOp::Min, cce.clone()),
        ];
        appended.append_descs(&ops, None).unwrap();
        let mut by_hand = vring(Arch::V3);
        by_hand.add_dma_packet(&copy).unwrap();
        by_hand.add_dma_packet_cce(KbinOp::Min, &cce).unwrap();
        assert_eq!(tx(&appended), tx(&by_hand));
    }

    #[test]
    fn a_devmem_load_is_a_copy_pair_per_tensor_named_by_variable() {
        let load = DevmemLoad {
            staged: SRC,
            var_id: 3,
            offset: 8,
            bytes: 64,
        };
        let template = devmem_load_template(Arch::V3, "encd_0", &[load, load]).unwrap();
        assert_eq!((tx(&template).len(), template.rx().max_var_id()), (2, 3));
        let symbol = TemplatePtr::from(rx(&template)[0].buf1_ptr);
        assert_eq!((symbol.var_id(), symbol.offset()), (3, 8));
    }

    #[test]
    fn synchronisation_descriptors_are_interleaved_with_the_data() {
        let ends = buffers(&[64]);
        let ops = [DmaOp::Copy(CopyPacket::new(&ends, &ends))];
        let then = [Signal::SemaphoreInc {
            block: 0,
            semaphore: 9,
        }];
        let step = IoStep {
            ops: &ops,
            then: &then,
        };
        let mut vring = vring(Arch::V3);
        vring.expand_io(&[step.clone(), step], 1 << 20).unwrap();
        let lens: Vec<u32> = tx(&vring).iter().map(|tx| tx.len_ctrl.byte_len()).collect();
        assert_eq!(lens, [64, 4, 64, 4]);
    }
}
