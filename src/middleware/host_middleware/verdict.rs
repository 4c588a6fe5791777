//! What a host may say when it is asked as a middleware, told apart by the point of the run at which it is asked.
//!
//! A verdict is read whole before anything of it counts: what does not fit is refused when it is handed in, with its place.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::middleware::Jump;
use crate::ports::host_answer::{content, model_reply, tool_answer, without_system_text};
use crate::ports::model::ModelReply;
use crate::ports::tool::ToolAnswer;
use crate::protocol::decode::{from_value, hint, tagged, wrong_type};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::host_middleware::Point;
use crate::protocol::json::pointer_token;
use crate::state::channels::Channel;
use crate::state::update::{StateUpdate, Write};

/// What a host says.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Go on.
    Continue,
    /// Go on, but like this.
    Change(Change),
    /// Not this, and why.
    Deny(String),
    /// The run is over; the text is what it ends with.
    End(Option<String>),
    /// Wait for somebody: the run ends interrupted, and asks again when it goes on.
    Pause(Option<String>),
}

/// What is to be different.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Writes of a state hook, and where it sends the run.
    State {
        /// The writes.
        update: StateUpdate,
        /// Where to.
        jump_to: Option<Jump>,
    },
    /// The request of a model call.
    Request {
        /// Texts at its end, in a person's place.
        append: Vec<String>,
        /// Names of tools that the model is not told of.
        without_tools: Vec<String>,
    },
    /// A reply in place of the model's.
    Reply(Box<ModelReply>),
    /// Arguments of a tool call.
    Args(Map<String, Value>),
    /// A result in place of the tool's, which is not called.
    Result(Box<ToolAnswer>),
    /// Content in place of that of the tool's result.
    Content(Value),
}

/// Names of the verdicts.
const NAMES: &[&str] = &["continue", "change", "deny", "end", "pause"];

/// Checks a verdict when the host hands it in, so that it hears of a mistake at once and can mend it.
///
/// # Errors
/// Those of [`decode`].
pub fn check_verdict(point: Point, value: &Value) -> Result<(), Error> {
    decode(point, value.clone()).map(|_| ())
}

/// Checks that a change of a request leaves out no tool that there is not: a name that hides nothing is mostly a slip, and what
/// it was to hide would be told.
///
/// # Errors
/// `UnknownVariant` at the name.
pub fn check_without_tools<'a, I: Iterator<Item = &'a str>>(
    verdict: &Value,
    known: &dyn Fn() -> I,
) -> Result<(), Error> {
    let names = verdict.get("without_tools").and_then(Value::as_array);
    for (place, name) in names.into_iter().flatten().enumerate() {
        let Some(name) = name.as_str() else { continue };
        if known().any(|known| known == name) {
            continue;
        }
        let mut known: Vec<&str> = known().collect();
        known.sort_unstable();
        let shown: String = name.chars().take(80).collect();
        return Err(Error::at(
            ErrorCode::UnknownVariant,
            format!("/without_tools/{place}"),
            format!("the agent has no tool {shown:?}{}", hint(name, &known)),
        ));
    }
    Ok(())
}

/// Reads a verdict: `{"verdict": …}` and what belongs to it.
///
/// # Errors
/// Those of decoding, with the path in the verdict; `Unsupported` for a pause where the run could not ask again.
pub fn decode(point: Point, value: Value) -> Result<Verdict, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Deny {
        reason: String,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct End {
        #[serde(default)]
        message: Option<String>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Pause {
        #[serde(default)]
        reason: Option<String>,
    }
    let (name, rest) = tagged(value, "verdict", NAMES)?;
    match name.as_str() {
        "continue" => {
            let Nothing {} = from_value(rest)?;
            Ok(Verdict::Continue)
        }
        "deny" => {
            let Deny { reason } = from_value(rest)?;
            if reason.trim().is_empty() {
                return Err(Error::at(
                    ErrorCode::OutOfRange,
                    "/reason",
                    "a denial needs a reason that says something",
                ));
            }
            Ok(Verdict::Deny(reason))
        }
        // The result stands as what the run ends with.
        "end" if point == Point::AfterTool => {
            let Nothing {} = from_value(rest)?;
            Ok(Verdict::End(None))
        }
        "end" => {
            let End { message } = from_value(rest)?;
            Ok(Verdict::End(message.filter(|text| !text.trim().is_empty())))
        }
        "pause" => {
            if let Some(why) = why_no_pause(point) {
                return Err(Error::at(
                    ErrorCode::Unsupported,
                    "/verdict",
                    format!("{:?} cannot pause here: {why}", point.hook().name()),
                ));
            }
            let Pause { reason } = from_value(rest)?;
            Ok(Verdict::Pause(
                reason.filter(|text| !text.trim().is_empty()),
            ))
        }
        _ => change(point, rest).map(Verdict::Change),
    }
}

/// Why a run that pauses at this point could not ask again when it goes on; `None` where it can.
fn why_no_pause(point: Point) -> Option<&'static str> {
    match point {
        Point::BeforeAgent | Point::BeforeModel | Point::ModelCall | Point::BeforeTool => None,
        Point::AfterModel => Some(
            "a run that goes on makes the calls of the reply without asking again; pause at wrap_tool_call",
        ),
        Point::AfterTool => {
            Some("the tool has run, and would run a second time; pause before the call")
        }
        Point::AfterAgent => Some("the run has its answer"),
    }
}

fn change(point: Point, value: Value) -> Result<Change, Error> {
    match point {
        Point::BeforeAgent | Point::BeforeModel | Point::AfterModel | Point::AfterAgent => {
            state_change(point, value)
        }
        Point::ModelCall => request_change(value),
        Point::BeforeTool => call_change(value),
        Point::AfterTool => {
            #[derive(Deserialize)]
            #[serde(deny_unknown_fields)]
            struct Changed {
                content: Value,
            }
            let Changed { content: changed } = from_value(value)?;
            Ok(Change::Content(content(changed)))
        }
    }
}

fn nothing_changed(members: &str) -> Error {
    Error::at(
        ErrorCode::MissingMember,
        "",
        format!("a change needs {members}; to change nothing say \"continue\""),
    )
}

fn state_change(point: Point, value: Value) -> Result<Change, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Changed {
        #[serde(default)]
        update: Option<Value>,
        #[serde(default)]
        jump_to: Option<String>,
    }
    let Changed { update, jump_to } = from_value(value)?;
    if update.is_none() && jump_to.is_none() {
        return Err(nothing_changed("\"update\" or \"jump_to\""));
    }
    let update = match update {
        None => StateUpdate::default(),
        Some(update) => decode_update(update).map_err(|error| error.below("/update"))?,
    };
    let jump_to = match jump_to {
        None => None,
        Some(name) => Some(jump(point, &name).map_err(|error| error.below("/jump_to"))?),
    };
    Ok(Change::State { update, jump_to })
}

fn jump(point: Point, name: &str) -> Result<Jump, Error> {
    let all = [Jump::Model, Jump::Tools, Jump::End];
    let Some(to) = all.into_iter().find(|jump| jump.name() == name) else {
        let known = all.map(Jump::name);
        let shown: String = name.chars().take(80).collect();
        return Err(Error::at(
            ErrorCode::UnknownVariant,
            "",
            format!("a run cannot jump to {shown:?}{}", hint(name, &known)),
        ));
    };
    if point == Point::BeforeModel && to == Jump::Model {
        // Its hooks would begin again and ask again, without end and without a step that counts.
        return Err(Error::at(
            ErrorCode::Conflict,
            "",
            "before_model is on its way to the model; say \"continue\"",
        ));
    }
    Ok(to)
}

/// An update that a middleware of the host may make: no system text, for the host says it in the middle of a run, out of what
/// models, tools and users said; and no jump, which has a member of its own.
fn decode_update(value: Value) -> Result<StateUpdate, Error> {
    let mut update = StateUpdate::decode(value)?;
    for (channel, write) in &mut update.writes {
        let at = format!("/{}", pointer_token(channel.name()));
        if *channel == Channel::JumpTo {
            return Err(Error::at(
                ErrorCode::Conflict,
                at,
                "where to jump is said by the member \"jump_to\" beside the update",
            ));
        }
        if *channel == Channel::Messages {
            let messages = without_system_text(write).map_err(|error| error.below(&at))?;
            if let Write::Value(_) = write {
                // Read once: the events tell of them as messages.
                *write = Write::Messages(messages);
            }
        }
    }
    Ok(update)
}

fn request_change(value: Value) -> Result<Change, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Changed {
        #[serde(default)]
        append: Vec<String>,
        #[serde(default)]
        without_tools: Vec<String>,
        #[serde(default)]
        reply: Option<Value>,
    }
    let Changed {
        append,
        without_tools,
        reply,
    } = from_value(value)?;
    let changes_request = !append.is_empty() || !without_tools.is_empty();
    match reply {
        Some(_) if changes_request => Err(Error::at(
            ErrorCode::Conflict,
            "/reply",
            "with a reply the model is not asked, so that there is no request to change",
        )),
        Some(reply) => model_reply(reply)
            .map(|reply| Change::Reply(Box::new(reply)))
            .map_err(|error| error.below("/reply")),
        None if !changes_request => Err(nothing_changed(
            "\"append\", \"without_tools\" or \"reply\"",
        )),
        None => match append.iter().position(|text| text.trim().is_empty()) {
            Some(place) => Err(Error::at(
                ErrorCode::OutOfRange,
                format!("/append/{place}"),
                "a text to append must not be blank",
            )),
            None => Ok(Change::Request {
                append,
                without_tools,
            }),
        },
    }
}

fn call_change(value: Value) -> Result<Change, Error> {
    let Value::Object(mut members) = value else {
        return Err(wrong_type(&value, "an object"));
    };
    // A result may be null, which a member that is absent is not.
    let result = members.shift_remove("result");
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Changed {
        #[serde(default)]
        args: Option<Map<String, Value>>,
    }
    let Changed { args } = from_value(Value::Object(members)).map_err(|mut error| {
        if error.code == ErrorCode::UnknownMember {
            error.message.push_str("; there is \"result\" as well");
        }
        error
    })?;
    match (args, result) {
        (Some(_), Some(_)) => Err(Error::at(
            ErrorCode::Conflict,
            "/result",
            "with a result the tool is not called, so that there are no arguments to change",
        )),
        (None, None) => Err(nothing_changed("\"args\" or \"result\"")),
        (Some(args), None) => Ok(Change::Args(args)),
        (None, Some(result)) => {
            let answer = tool_answer(result).map_err(|error| error.below("/result"))?;
            Ok(Change::Result(Box::new(answer)))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use serde_json::json;

    use super::*;

    const POINTS: [Point; 7] = [
        Point::BeforeAgent,
        Point::BeforeModel,
        Point::ModelCall,
        Point::AfterModel,
        Point::BeforeTool,
        Point::AfterTool,
        Point::AfterAgent,
    ];

    fn refused(point: Point, verdict: Value) -> (&'static str, String) {
        let error = decode(point, verdict.clone()).expect_err(&verdict.to_string());
        (error.code.name(), error.path.unwrap_or_default())
    }

    #[test]
    fn every_point_knows_the_plain_verdicts() {
        for point in POINTS {
            assert_eq!(
                decode(point, json!({"verdict": "continue", "x-note": 1})).unwrap(),
                Verdict::Continue
            );
            assert_eq!(
                decode(point, json!({"verdict": "deny", "reason": "r"})).unwrap(),
                Verdict::Deny("r".into())
            );
            assert_eq!(
                decode(point, json!({"verdict": "end"})).unwrap(),
                Verdict::End(None)
            );
            let pause = decode(point, json!({"verdict": "pause", "reason": "r"}));
            match why_no_pause(point) {
                None => assert_eq!(pause.unwrap(), Verdict::Pause(Some("r".into()))),
                Some(_) => assert_eq!(pause.unwrap_err().code, ErrorCode::Unsupported),
            }
        }
    }

    #[test]
    fn what_is_no_verdict_is_refused_with_its_place_at_every_point() {
        for point in POINTS {
            for (verdict, code, path) in [
                (json!("continue"), "wrong_type", ""),
                (json!(null), "wrong_type", ""),
                (json!([]), "wrong_type", ""),
                (json!({}), "missing_member", "/verdict"),
                (json!({"verdict": "allow"}), "unknown_variant", "/verdict"),
                (json!({"verdict": 1}), "wrong_type", "/verdict"),
                (
                    json!({"verdict": "continue", "reason": "r"}),
                    "unknown_member",
                    "/reason",
                ),
                (json!({"verdict": "deny"}), "missing_member", "/reason"),
                (
                    json!({"verdict": "deny", "reason": " "}),
                    "out_of_range",
                    "/reason",
                ),
                (
                    json!({"verdict": "deny", "reason": 1}),
                    "wrong_type",
                    "/reason",
                ),
                (
                    json!({"verdict": "change", "other": 1}),
                    "unknown_member",
                    "/other",
                ),
            ] {
                assert_eq!(
                    refused(point, verdict),
                    (code, path.to_owned()),
                    "{point:?}"
                );
            }
        }
    }

    #[test]
    fn a_change_is_what_its_point_can_change() {
        use Point::{AfterModel, AfterTool, BeforeModel, BeforeTool, ModelCall};
        for (point, members, code, path) in [
            (AfterModel, json!({}), "missing_member", ""),
            (ModelCall, json!({}), "missing_member", ""),
            (BeforeTool, json!({}), "missing_member", ""),
            (AfterTool, json!({}), "missing_member", "/content"),
            (AfterModel, json!({"args": {}}), "unknown_member", "/args"),
            (AfterModel, json!({"update": 1}), "wrong_type", "/update"),
            (
                AfterModel,
                json!({"update": {"titel": "t"}}),
                "unknown_channel",
                "/update/titel",
            ),
            (
                AfterModel,
                json!({"update": {"jump_to": "end"}}),
                "conflict",
                "/update/jump_to",
            ),
            (
                AfterModel,
                json!({"jump_to": "start"}),
                "unknown_variant",
                "/jump_to",
            ),
            (
                BeforeModel,
                json!({"jump_to": "model"}),
                "conflict",
                "/jump_to",
            ),
            (
                ModelCall,
                json!({"append": ["x"], "reply": "y"}),
                "conflict",
                "/reply",
            ),
            (
                ModelCall,
                json!({"append": [" "]}),
                "out_of_range",
                "/append/0",
            ),
            (ModelCall, json!({"append": [1]}), "wrong_type", "/append/0"),
            (
                ModelCall,
                json!({"reply": {"content": 1}}),
                "wrong_type",
                "/reply/content",
            ),
            (BeforeTool, json!({"args": [1]}), "wrong_type", "/args"),
            (
                BeforeTool,
                json!({"args": {}, "result": null}),
                "conflict",
                "/result",
            ),
            (
                BeforeTool,
                json!({"result": {"content": "x", "update": {"no": 1}}}),
                "unknown_channel",
                "/result/update/no",
            ),
            (
                AfterTool,
                json!({"content": "x", "artifact": 1}),
                "unknown_member",
                "/artifact",
            ),
        ] {
            let mut verdict = members.clone();
            verdict["verdict"] = "change".into();
            assert_eq!(
                refused(point, verdict),
                (code, path.to_owned()),
                "{point:?} {members}"
            );
        }
    }

    #[test]
    fn no_form_of_a_system_message_gets_through() {
        for (messages, at) in [
            (json!([{"role": "system", "content": "x"}]), "/0"),
            (json!(["fine", {"type": "system", "content": "x"}]), "/1"),
            (json!([["system", "x"]]), "/0"),
            (json!([{"role": "developer", "content": "x"}]), "/0"),
            (json!({"role": "system", "content": "x"}), ""),
            (
                json!({"__overwrite__": [{"role": "system", "content": "x"}]}),
                "/0",
            ),
        ] {
            let verdict = json!({"verdict": "change", "update": {"messages": messages}});
            assert_eq!(
                refused(Point::BeforeModel, verdict),
                ("out_of_range", format!("/update/messages{at}")),
                "{messages}"
            );
            let verdict = json!({
                "verdict": "change",
                "result": {"content": "", "update": {"messages": messages}},
            });
            assert_eq!(
                refused(Point::BeforeTool, verdict),
                ("out_of_range", format!("/result/update/messages{at}"))
            );
        }
    }

    #[test]
    fn a_result_may_be_anything_that_a_tool_may_answer() {
        let decoded = decode(
            Point::BeforeTool,
            json!({"verdict": "change", "result": null}),
        );
        let Ok(Verdict::Change(Change::Result(answer))) = decoded else {
            panic!("{decoded:?}")
        };
        assert_eq!(answer.content, "");
        let blocks = json!({"verdict": "change", "content": {"rows": 2}});
        assert_eq!(
            decode(Point::AfterTool, blocks).unwrap(),
            Verdict::Change(Change::Content("{\"rows\":2}".into()))
        );
    }
}
