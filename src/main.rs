//! The `udma-sim` command.

fn main() {}
