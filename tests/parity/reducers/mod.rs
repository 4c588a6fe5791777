//! Reducers and channel values against the reference: its recorded answers, its rules by name, and slow models.

mod generated;
mod models;
mod random;
mod rules;
mod vectors;
