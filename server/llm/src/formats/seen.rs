//! Text and images as a model is shown them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use shared_types::event::{Part, Parts};

use crate::{Images, Profile};

/// A part as a model is shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ShownPart {
    /// Words: those of the part, or a description of an image.
    Words(String),
    /// An image itself.
    Image {
        /// Its format, such as `image/png`.
        media_type: String,
        /// Its bytes, in base64.
        data: String,
    },
}

/// The part as this model is shown it; `None` for a part without words that is no image.
///
/// An image stays an image only where the model can see, its vendor takes the format, and the bytes are at hand. A
/// vendor would refuse the whole conversation for one image of another format.
pub(crate) fn seen(
    part: &Part,
    profile: &Profile,
    images: &Images,
    formats: &[&str],
) -> Option<ShownPart> {
    if let Part::Image {
        digest, media_type, ..
    } = part
        && profile.sees
        && formats.contains(&media_type.as_str())
        && let Some(bytes) = images.get(digest)
    {
        return Some(ShownPart::Image {
            media_type: media_type.clone(),
            data: STANDARD.encode(bytes),
        });
    }
    let words = Parts(vec![part.clone()]).words().into_owned();
    (!words.is_empty()).then_some(ShownPart::Words(words))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use shared_types::Digest;

    use super::*;

    #[test]
    fn an_image_is_shown_where_the_model_can_read_it_and_is_described_elsewhere() {
        let bytes = Bytes::from_static(b"PNG");
        let digest = Digest::of(&bytes);
        let image = |media_type: &str| Part::Image {
            digest,
            media_type: media_type.to_owned(),
            bytes: 3,
        };
        let blind = Profile::default();
        let seeing = Profile {
            sees: true,
            ..Profile::default()
        };
        let (none, all) = (Images::new(), Images::from([(digest, bytes)]));
        let shown = |part: &Part, profile, images| seen(part, profile, images, &["image/png"]);
        let png = image("image/png");
        assert_eq!(
            shown(&png, &seeing, &all),
            Some(ShownPart::Image {
                media_type: "image/png".to_owned(),
                data: "UE5H".to_owned(),
            })
        );
        let words = Some(ShownPart::Words(
            "[an image: image/png, 3 bytes]".to_owned(),
        ));
        assert_eq!(shown(&png, &blind, &all), words);
        assert_eq!(shown(&png, &seeing, &none), words);
        let words = Some(ShownPart::Words(
            "[an image: image/tiff, 3 bytes]".to_owned(),
        ));
        assert_eq!(shown(&image("image/tiff"), &seeing, &all), words);
        let empty = Part::Text {
            text: String::new(),
        };
        assert_eq!(shown(&empty, &seeing, &all), None);
    }
}
