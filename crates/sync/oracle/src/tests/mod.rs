//! Tests of the oracle: the counterexamples, and single rules with and without a hazard.

mod counterexamples;
mod queues;
mod rendering;
mod rules;
