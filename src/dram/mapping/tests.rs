//! Where addresses go, tested.

use super::super::config::DramConfig;
use super::Place;
use std::collections::BTreeSet;

fn config(settings: &[&str]) -> Result<DramConfig, String> {
    let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
    DramConfig::load("hbm2-pseudo-channel", &settings).map_err(|error| error.to_string())
}

/// The tables against the fields themselves, on every memory.
#[test]
fn tables_say_what_the_fields_say() {
    for name in DramConfig::builtin_names() {
        let mapping = DramConfig::load(name, &[]).unwrap().mapping;
        let mut access = 0u64;
        for step in 0..10_000 {
            let within = access % mapping.stack_accesses.get();
            let place = mapping.place(within << mapping.access_shift);
            assert_eq!(
                place,
                Some(mapping.within_stack(within)),
                "{name} {within:#x}"
            );
            access = access
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(step);
        }
    }
}

/// Whatever is hashed, a run's banks are those of its accesses, and a cycle has every bank once.
#[test]
fn a_run_goes_where_its_accesses_go() {
    let orders = [
        ("row bank column:2 bank_group channel column", 1),
        (
            "row bank column:3 bank_group:1 channel column bank_group",
            2,
        ),
        ("row bank column channel bank_group", 4),
        (
            "row bank column:3 channel bank_group:1 column bank_group",
            16,
        ),
        ("row bank column:3 channel bank_group column", 16),
    ];
    for (order, cycle) in orders {
        for hash in ["[]", r#"["bank"]"#, r#"["channel", "bank_group", "bank"]"#] {
            let mapping = config(&[
                "device.channels=4",
                &format!("mapping.order={order}"),
                &format!("mapping.hash={hash}"),
            ]);
            let mapping = mapping.unwrap().mapping;
            assert_eq!(mapping.cycle, cycle, "{order}");
            let accesses = mapping.block.len() as u64;
            for first in (0..mapping.accesses).step_by(9973) {
                let begin = mapping.block_of(first);
                let place = |access| mapping.place(access << mapping.access_shift).unwrap();
                let last = begin + accesses - 1;
                let block = mapping.block(begin << mapping.access_shift).unwrap();
                assert_eq!(block.place(), place(begin));
                let run = mapping.run(first, last, block).unwrap();
                let banks = (first..=last).map(|access| place(access).bank as usize);
                assert!(run.banks().eq(banks), "{order} {hash} {first:#x}");
                assert!((first..=last).all(|access| {
                    let (one, other) = (place(access), place(begin));
                    (one.channel, one.row) == (other.channel, other.row)
                }));
                assert!(mapping.run(first, last + 1, block).is_none());
            }
        }
    }
}

/// Against the sum of the groups one by one.
#[test]
fn folding_takes_every_group() {
    for width in 1..=12 {
        for bits in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef, 0xfedc_ba98 << 20] {
            let group = |n: u32| bits >> n & ((1 << width) - 1);
            let groups = (0..u64::BITS).step_by(width as usize);
            let sum = groups.map(group).fold(0, |sum, group| sum ^ group);
            assert_eq!(
                u64::from(super::fold(bits, width)),
                sum,
                "{bits:#x} by {width}"
            );
        }
    }
}

fn place(channel: u32, bank: u32, row: u32, column: u32) -> Option<Place> {
    Some(Place {
        channel,
        bank,
        row,
        column,
    })
}

/// By hand: 1 KiB pages, 16 banks in 4 groups.
#[test]
fn bits_go_where_the_order_says() {
    let m1 = config(&[]).unwrap().mapping;
    assert_eq!(m1.place(0x3e7), place(0, 0, 0, 31));
    assert_eq!(m1.place(0x400), place(0, 4, 0, 0)); // bank group 1, bank 0
    assert_eq!(m1.place(0x1000), place(0, 1, 0, 0)); // bank 1 of group 0
    assert_eq!(m1.place(0x4000), place(0, 0, 1, 0));
    assert_eq!(m1.place((512 << 20) - 1), place(0, 15, 32767, 31));
    assert_eq!(m1.place(512 << 20), None);
    let m2 = config(&["mapping.order=row bank column bank_group"])
        .unwrap()
        .mapping;
    assert_eq!(m2.place(0x20), place(0, 4, 0, 0));
    assert_eq!(m2.place(0x80), place(0, 0, 0, 1));
    let split = config(&["mapping.order=row column:2 bank bank_group:1 column bank_group"]);
    let split = split.unwrap().mapping;
    assert_eq!(split.place(0x20), place(0, 4, 0, 0)); // low bit of the group
    assert_eq!(split.place(0x40), place(0, 0, 0, 1));
    assert_eq!(split.place(0x200), place(0, 8, 0, 0)); // its high bit
    assert_eq!(split.place(0x1000), place(0, 0, 0, 8)); // high bits of the column
}

/// Even with 12 rows, which is no power of two.
#[test]
fn no_two_addresses_fall_together() {
    for order in [
        "stack row bank column pseudo_channel channel bank_group",
        "stack row bank column:2 bank_group pseudo_channel channel column",
        "stack row channel:1 bank bank_group:1 channel column:3 pseudo_channel column bank_group",
    ] {
        for hash in [
            r#"[]"#,
            r#"["channel", "bank"]"#,
            r#"["channel", "pseudo_channel", "bank_group", "bank"]"#,
        ] {
            let mapping = config(&[
                "device.rows=12",
                "device.stacks=2",
                "device.channels=4",
                "device.pseudo_channels=2",
                &format!("mapping.order={order}"),
                &format!("mapping.hash={hash}"),
            ]);
            let mapping = mapping.unwrap().mapping;
            let accesses = mapping.capacity() / 32;
            let places: BTreeSet<_> = (0..accesses)
                .map(|access| mapping.place(access * 32).unwrap())
                .map(|place| (place.channel, place.bank, place.row, place.column))
                .collect();
            assert_eq!(places.len() as u64, accesses, "{order} {hash}");
            assert!(places.iter().all(|place| place.0 < 16 && place.2 < 12));
        }
    }
}

#[test]
fn orders_that_do_not_fit_are_refused() {
    for (order, right) in [
        ("row bank bank_group", "5 bits of column are not placed"),
        (
            "row bank bank_group column rank",
            "unknown field \"rank\"; expected one of stack, channel",
        ),
        ("row bank bank_group column:9", "expected at most 5"),
        ("row bank bank_group column:x", "expected at most 5"),
    ] {
        let error = config(&[&format!("mapping.order={order}")]).unwrap_err();
        assert!(
            error.contains("mapping.order: \"") && error.contains(right),
            "{error}"
        );
    }
    let error = config(&["device.rows=3", "mapping.order=bank row bank_group column"]);
    assert!(error.unwrap_err().contains("must begin with stack and row"));
    let error = config(&["device.stacks=2"]).unwrap_err();
    assert!(error.contains("1 bits of stack are not placed"), "{error}");
    let order = "mapping.order=row stack bank bank_group column";
    let error = config(&["device.stacks=2", order]).unwrap_err();
    assert!(error.contains("must begin with stack"), "{error}");
    let error = config(&[r#"mapping.hash=["row"]"#]).unwrap_err();
    assert!(
        error.contains("mapping.hash: \"row\" is invalid; expected one of channel"),
        "{error}"
    );
}
