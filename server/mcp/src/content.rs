//! The result of a call: texts, images, and words on what is neither.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde_json::Value;
use shared_types::{
    ImageFormat,
    clean::{clean, clean_line},
};

/// Longest name or address within a result, in characters.
const MAX_WORDS: usize = 300;

/// The content of a result. It comes from a stranger: its text is data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// Its texts, each on lines of its own.
    pub text: String,
    /// Its images.
    pub images: Vec<Image>,
    /// True if the server says that the call has failed.
    pub failed: bool,
}

/// An image that models can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its format, by its bytes.
    pub format: ImageFormat,
    /// Its bytes.
    pub bytes: Bytes,
}

impl Content {
    /// The content of a call's result.
    pub(crate) fn of_call(result: &Value) -> Self {
        let mut content = Self {
            failed: result["isError"] == true,
            ..Self::default()
        };
        let blocks = result["content"].as_array();
        for block in blocks.into_iter().flatten() {
            content.block(block);
        }
        let structured = &result["structuredContent"];
        if content.text.is_empty() && content.images.is_empty() && !structured.is_null() {
            content.line(&clean(&structured.to_string()));
        }
        content
    }

    /// The content of a resource.
    pub(crate) fn of_resource(result: &Value) -> Self {
        let mut content = Self::default();
        let parts = result["contents"].as_array();
        for part in parts.into_iter().flatten() {
            content.resource(part);
        }
        content
    }

    /// The content of a prompt's messages, in their order.
    pub(crate) fn of_prompt(result: &Value) -> Self {
        let mut content = Self::default();
        let messages = result["messages"].as_array();
        for message in messages.into_iter().flatten() {
            content.block(&message["content"]);
        }
        content
    }

    fn block(&mut self, block: &Value) {
        let word = |name: &str| clean_line(block[name].as_str().unwrap_or_default(), MAX_WORDS);
        match block["type"].as_str() {
            Some("text") => {
                let text = clean(block["text"].as_str().unwrap_or_default());
                self.line(&text);
            }
            Some("image") => self.image(block["data"].as_str()),
            Some("audio") => self.line(&format!(
                "[audio, {}: it cannot be shown]",
                word("mimeType")
            )),
            Some("resource") => self.resource(&block["resource"]),
            Some("resource_link") => {
                self.line(&format!("[resource {} ({})]", word("uri"), word("name")));
            }
            _ => self.line("[a part of a kind that is not known]"),
        }
    }

    fn image(&mut self, data: Option<&str>) {
        let bytes = data.and_then(|data| STANDARD.decode(data).ok());
        let image = bytes.and_then(|bytes| {
            let format = ImageFormat::of(&bytes)?;
            let bytes = bytes.into();
            Some(Image { format, bytes })
        });
        match image {
            Some(image) => self.images.push(image),
            None => self.line(&format!("[an image that is not {}]", ImageFormat::NAMES)),
        }
    }

    fn resource(&mut self, part: &Value) {
        let uri = clean_line(part["uri"].as_str().unwrap_or_default(), MAX_WORDS);
        let is_image = part["mimeType"]
            .as_str()
            .is_some_and(|kind| kind.starts_with("image/"));
        match (part["text"].as_str(), part["blob"].as_str()) {
            (Some(text), _) => self.line(&format!("[resource {uri}]\n{}", clean(text))),
            (None, Some(blob)) if is_image => self.image(Some(blob)),
            (None, Some(blob)) => {
                let bytes = blob.len() / 4 * 3;
                self.line(&format!(
                    "[resource {uri}: about {bytes} bytes that are no text]"
                ));
            }
            (None, None) => self.line(&format!("[resource {uri}: it is empty]")),
        }
    }

    fn line(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_of_content_has_its_words_and_images_stay_images() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\nrest");
        let result = json!({ "isError": true, "content": [
            { "type": "text", "text": "one\u{1b}[31m" },
            { "type": "image", "data": png, "mimeType": "image/jpeg" },
            { "type": "image", "data": "not base64" },
            { "type": "audio", "data": "", "mimeType": "audio/wav" },
            { "type": "resource_link", "uri": "file:///a", "name": "a" },
            { "type": "resource", "resource": { "uri": "x:1", "text": "inner" } },
            { "type": "new" },
        ] });
        let content = Content::of_call(&result);
        assert!(content.failed);
        assert_eq!(content.images.len(), 1);
        assert_eq!(content.images[0].format, ImageFormat::Png);
        let lines: Vec<_> = content.text.lines().collect();
        assert_eq!(lines[0], "one");
        assert_eq!(lines[2], "[audio, audio/wav: it cannot be shown]");
        assert_eq!(lines[3], "[resource file:///a (a)]");
        assert_eq!(lines[4..6], ["[resource x:1]", "inner"]);
    }

    #[test]
    fn structured_content_counts_where_nothing_else_is_there() {
        let result = json!({ "content": [], "structuredContent": { "a": 1 } });
        assert_eq!(Content::of_call(&result).text, r#"{"a":1}"#);
        assert_eq!(Content::of_call(&json!({})), Content::default());
    }
}
