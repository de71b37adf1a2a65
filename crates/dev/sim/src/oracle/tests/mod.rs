//! Tests of the oracle: the counterexamples, and single rules in both directions.

mod counterexamples;
mod notation;
mod queues;
mod random;
mod rendering;
mod rules;
