//! Tests of the oracle: the counterexamples, and single rules in both directions.

mod counterexamples;
mod notation;
mod queues;
mod tests;
mod rendering;
mod rules;
