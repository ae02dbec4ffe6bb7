//! The interrupt controller of a unit (`docs/hardware.md`, "Registers"): causes, masks, and the
//! funnel from the error groups through the main groups to the unit's interrupt.
//!
//! Level semantics: a group is *pending* while a cause is set that is not masked. Main group D sums
//! up the error groups, group A sums up B, C and D; their summary bits follow the level and cannot be
//! cleared by hand.

use crate::arch::QueueId;
use crate::arch::regs::iofic::{
    self, GROUP_MISC, GROUP_RX, GROUP_SUMMARY, GROUP_TX, GroupControl, MiscCauses, SummaryCauses,
};
use crate::arch::regs::table::InterruptGroup;
use crate::arch::regs::{Direction, Halves, general};

const MAIN_GROUPS: usize = general::IOFIC_MAIN_GROUPS as usize;

#[derive(Clone, Copy)]
struct Group {
    cause: u32,
    mask: u32,
    control: GroupControl,
    abort_mask: u32,
}

impl Group {
    /// Everything masked, nothing pending.
    const RESET: Group = Group {
        cause: 0,
        mask: u32::MAX,
        control: GroupControl::new(),
        abort_mask: 0,
    };

    fn pending(&self) -> u32 {
        self.cause & !self.mask
    }
}

/// The interrupt controller of one unit.
pub(super) struct Interrupts {
    main: [Group; MAIN_GROUPS],
    errors: Halves<Group>,
    /// Parity errors of the AXI masters' FIFOs; nothing in the model raises one.
    axi: Group,
    /// Main groups whose interrupt has been sent and that have been pending since.
    sent: [bool; MAIN_GROUPS],
    /// Whether anything changed since [`Interrupts::take`] was called.
    pub changed: bool,
}

impl Default for Interrupts {
    fn default() -> Self {
        Interrupts {
            main: [Group::RESET; MAIN_GROUPS],
            errors: Halves::each(|_| Group::RESET),
            axi: Group::RESET,
            sent: [false; MAIN_GROUPS],
            changed: false,
        }
    }
}

impl Interrupts {
    fn group_mut(&mut self, group: InterruptGroup) -> &mut Group {
        match group {
            InterruptGroup::Main(n) => &mut self.main[usize::from(n) % MAIN_GROUPS],
            InterruptGroup::Errors(direction) => &mut self.errors[direction],
            InterruptGroup::AxiErrors => &mut self.axi,
        }
    }

    /// Sets an error's cause; returns whether its group masks the abort.
    pub fn set_error(&mut self, direction: Direction, mask: u32) -> bool {
        self.changed = true;
        let group = &mut self.errors[direction];
        group.cause |= mask;
        group.abort_mask & mask != 0
    }

    /// Error causes of one half.
    pub fn error_causes(&self, direction: Direction) -> u32 {
        self.errors[direction].cause
    }

    /// A packet of queue `q` that asked for an interrupt is complete.
    pub fn set_completion(&mut self, direction: Direction, q: QueueId) {
        let group = match direction {
            Direction::M2s => GROUP_TX,
            Direction::S2m => GROUP_RX,
        };
        self.main[group].cause |= 1 << q.0;
        self.changed = true;
    }

    /// Reads a register of a group.
    pub fn read(&mut self, group: InterruptGroup, offset: u64) -> u32 {
        self.sum_up();
        let group = self.group_mut(group);
        match offset {
            iofic::CAUSE => {
                let cause = group.cause;
                if group.control.clear_on_read() {
                    group.cause = 0;
                }
                cause
            }
            iofic::MASK => group.mask,
            iofic::STATUS => group.pending(),
            iofic::CONTROL => group.control.into_bits(),
            iofic::ABORT_MASK => group.abort_mask,
            _ => 0,
        }
    }

    /// Writes a register of a group.
    pub fn write(&mut self, group: InterruptGroup, offset: u64, value: u32) {
        self.changed = true;
        let group = self.group_mut(group);
        match offset {
            // Write 0 clears, write 1 has no effect.
            iofic::CAUSE => group.cause &= value,
            iofic::CAUSE_SET => group.cause |= value,
            iofic::MASK => group.mask = value,
            // Write 0 unmasks, write 1 has no effect.
            iofic::MASK_CLEAR => group.mask &= value,
            iofic::CONTROL => group.control = GroupControl::from_bits(value),
            iofic::ABORT_MASK => group.abort_mask = value,
            _ => {}
        }
    }

    /// Summary bits follow the groups they sum up.
    fn sum_up(&mut self) {
        let pending = |group: &Group| group.pending() != 0;
        let misc = &mut self.main[GROUP_MISC];
        misc.cause = MiscCauses::from_bits(misc.cause)
            .with_m2s_errors(pending(&self.errors.m2s))
            .with_s2m_errors(pending(&self.errors.s2m))
            .with_axi_errors(pending(&self.axi))
            .into_bits();
        let [rx, tx, misc] =
            [GROUP_RX, GROUP_TX, GROUP_MISC].map(|group| pending(&self.main[group]));
        let summary = &mut self.main[GROUP_SUMMARY];
        summary.cause = SummaryCauses::from_bits(summary.cause)
            .with_rx(rx)
            .with_tx(tx)
            .with_misc(misc)
            .into_bits();
    }

    /// Appends the main groups that have become pending since the last call: each sends one interrupt,
    /// unless its messages are masked. Auto-mask and auto-clear act on it.
    pub fn take(&mut self, fired: &mut Vec<u8>) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        self.sum_up();
        for (n, group) in (0..).zip(&mut self.main) {
            let sent = &mut self.sent[usize::from(n)];
            // A masked message is sent when it is unmasked, if the group is still pending (C).
            let pending = match group.control.mask_message() {
                true => 0,
                false => group.pending(),
            };
            let fires = pending != 0 && !*sent;
            *sent = pending != 0;
            if !fires {
                continue;
            }
            fired.push(n);
            if group.control.auto_mask() {
                group.mask |= pending;
            }
            if group.control.auto_clear() {
                group.cause &= !pending;
            }
            *sent = group.pending() != 0;
        }
    }
}
