//! JSON in few lines that can still be compared: a line for each short value and for each pod.

use serde_json::Value;

const WIDTH: usize = 200;
/// Objects and lists deeper than this are in one line, however long that is.
const DEEPEST: usize = 4;

pub(super) fn text(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, &mut text);
    text.push('\n');
    text
}

fn write(value: &Value, depth: usize, text: &mut String) {
    let line = value.to_string();
    let (open, close) = if value.is_array() { ('[', ']') } else { ('{', '}') };
    let is_flat = !value.is_array() && !value.is_object();
    if is_flat || line.len() <= WIDTH || depth >= DEEPEST {
        text.push_str(&line);
        return;
    }
    text.push(open);
    let mut is_first = true;
    let mut begin = |text: &mut String| {
        text.push_str(if std::mem::take(&mut is_first) { "\n" } else { ",\n" });
        text.push_str(&" ".repeat(depth + 1));
    };
    for item in value.as_array().into_iter().flatten() {
        begin(text);
        write(item, depth + 1, text);
    }
    for (key, item) in value.as_object().into_iter().flatten() {
        begin(text);
        text.push_str(&format!("{}:", Value::from(key.as_str())));
        write(item, depth + 1, text);
    }
    text.push('\n');
    text.push_str(&" ".repeat(depth));
    text.push(close);
}
