//! wip
use crate::protocol::error::Error;
use crate::protocol::message::Message;
use serde_json::Value;
/// wip
pub fn truthy(_v: &Value) -> bool {
    true
}
/// wip
pub fn write(v: &Value) -> Result<Vec<Message>, Error> {
    match v {
        Value::Array(a) => a
            .iter()
            .map(|v| Message::from_canonical(v.clone()))
            .collect(),
        v => Ok(vec![Message::from_canonical(v.clone())?]),
    }
}
