//! The tokens that a subagent's model calls took: one record for each call, handed in once.
//!
//! Source: DeerFlow's token collector of subagents, SUB-54, SUB-55.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::ports::model::Usage;

/// The tokens of one model call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRecord {
    /// The model call.
    pub source_run_id: String,
    /// `subagent:` and the name of the subagent.
    pub caller: String,
    /// The model, if it is known.
    pub model_name: Option<String>,
    /// Its tokens; the total is more than 0.
    pub usage: Usage,
}

impl UsageRecord {
    /// The record in JSON: `cache_read_tokens` only where there are any (SUB-54).
    pub fn to_value(&self) -> Value {
        let mut record = Map::from_iter([
            (
                "source_run_id".to_owned(),
                self.source_run_id.as_str().into(),
            ),
            ("caller".to_owned(), self.caller.as_str().into()),
            ("model_name".to_owned(), self.model_name.clone().into()),
            ("input_tokens".to_owned(), self.usage.input_tokens.into()),
            ("output_tokens".to_owned(), self.usage.output_tokens.into()),
            ("total_tokens".to_owned(), self.usage.total_tokens.into()),
        ]);
        if let Some(tokens) = self.usage.cache_read.filter(|tokens| *tokens > 0) {
            record.insert("cache_read_tokens".to_owned(), tokens.into());
        }
        Value::Object(record)
    }
}

/// The records of one execution. It grows with its model calls, whose number is bounded by its turns.
#[derive(Debug)]
pub struct UsageLog {
    caller: String,
    calls: HashSet<String>,
    records: Vec<UsageRecord>,
    total: Option<Usage>,
    is_reported: bool,
}

impl UsageLog {
    /// Of the subagent of this name; nothing was used yet.
    pub fn new(subagent: &str) -> Self {
        UsageLog {
            caller: format!("subagent:{subagent}"),
            calls: HashSet::new(),
            records: Vec::new(),
            total: None,
            is_reported: false,
        }
    }

    /// Notes the tokens of a model call; whether they count. The first record of a call is its only one, a total that is
    /// missing is the sum, and a call without tokens is none (SUB-54).
    pub fn record(&mut self, call_id: &str, model_name: Option<&str>, usage: &Usage) -> bool {
        let mut usage = usage.clone();
        if usage.total_tokens == 0 {
            usage.total_tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        }
        if usage.total_tokens == 0 || !self.calls.insert(call_id.to_owned()) {
            return false;
        }
        self.total.get_or_insert_default().add(&usage);
        self.records.push(UsageRecord {
            source_run_id: call_id.to_owned(),
            caller: self.caller.clone(),
            model_name: model_name.map(str::to_owned),
            usage,
        });
        true
    }

    /// The tokens of all calls so far; `None` when no call told of any.
    pub fn total(&self) -> Option<&Usage> {
        self.total.as_ref()
    }

    /// Hands the records in: all of them the first time, `None` ever after, so that nothing counts twice (SUB-55). What is
    /// noted later stays in the total only.
    pub fn take_report(&mut self) -> Option<Vec<UsageRecord>> {
        let is_first = !std::mem::replace(&mut self.is_reported, true);
        is_first.then(|| std::mem::take(&mut self.records))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn usage(input: u64, output: u64, total: u64, cache_read: Option<u64>) -> Usage {
        Usage {
            input_tokens: input,
            output_tokens: output,
            total_tokens: total,
            cache_read,
            ..Usage::default()
        }
    }

    #[test]
    fn sub_54_one_record_for_each_model_call() {
        let mut log = UsageLog::new("bash");
        assert!(log.record("m1", Some("gpt"), &usage(5, 2, 9, Some(3))));
        assert!(!log.record("m1", Some("gpt"), &usage(5, 2, 9, Some(3))));
        assert!(log.record("m2", None, &usage(1, 1, 0, Some(0))));
        assert!(!log.record("m3", None, &usage(0, 0, 0, None)));
        // A call that had no tokens may still tell of some.
        assert!(log.record("m3", None, &usage(0, 0, 4, None)));
        let total = usage(6, 3, 15, Some(3));
        assert_eq!(log.total(), Some(&total));
        let report = log.take_report().expect("the first report");
        let report: Vec<Value> = report.iter().map(UsageRecord::to_value).collect();
        assert_eq!(
            report,
            [
                json!({
                    "source_run_id": "m1", "caller": "subagent:bash", "model_name": "gpt",
                    "input_tokens": 5, "output_tokens": 2, "total_tokens": 9, "cache_read_tokens": 3,
                }),
                json!({
                    "source_run_id": "m2", "caller": "subagent:bash", "model_name": null,
                    "input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                }),
                json!({
                    "source_run_id": "m3", "caller": "subagent:bash", "model_name": null,
                    "input_tokens": 0, "output_tokens": 0, "total_tokens": 4,
                }),
            ]
        );
    }

    #[test]
    fn sub_55_the_report_is_handed_in_once() {
        let mut log = UsageLog::new("a");
        assert_eq!(log.total(), None);
        assert_eq!(log.take_report(), Some(Vec::new()));
        log.record("late", None, &usage(1, 0, 1, None));
        assert_eq!(log.take_report(), None);
        assert_eq!(log.total(), Some(&usage(1, 0, 1, None)));
    }
}
