//! A streamed reply in the chat completions format.
#![no_main]

mod reply_stream;

use fawn::adapters::model::openai::ChatCompletion;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| reply_stream::check::<ChatCompletion>(input));
