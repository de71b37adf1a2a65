//! Tests of the oracle: the counterexamples, and single rules in both directions.

mod counterexamples;
mod queues;
mod rendering;
mod rules;
