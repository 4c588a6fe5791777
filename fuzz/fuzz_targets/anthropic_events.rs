//! A streamed reply in the messages format.
#![no_main]

mod reply_stream;

use fawn::adapters::model::anthropic::Messages;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| reply_stream::check::<Messages>(input));
