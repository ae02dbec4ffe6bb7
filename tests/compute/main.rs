//! The compute engine: arithmetic against NumPy, packets from descriptors to bytes.

mod agreement;
mod casts;
mod checksums;
mod packets;
mod reductions;
mod reshape;
mod stochastic;
mod support;
mod types;
mod vectors;
