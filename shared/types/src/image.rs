//! The formats of images that models read.

/// A format of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFormat {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// GIF.
    Gif,
    /// WebP.
    Webp,
}

impl ImageFormat {
    /// The names of the formats, in words.
    pub const NAMES: &str = "PNG, JPEG, GIF or WebP";

    /// The format of these bytes, by their beginning; `None` if they are no image that models read.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => Some(Self::Webp),
            _ => None,
        }
    }

    /// The format of a file with this path, by the end of its name.
    pub fn of_path(path: &str) -> Option<Self> {
        let (_, ending) = path.rsplit_once('.')?;
        match ending.to_ascii_lowercase().as_str() {
            "png" => Some(Self::Png),
            "jpg" | "jpeg" => Some(Self::Jpeg),
            "gif" => Some(Self::Gif),
            "webp" => Some(Self::Webp),
            _ => None,
        }
    }

    /// Its media type, such as `image/png`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_known_by_the_bytes_and_guessed_by_the_name() {
        for (bytes, format) in [
            (&b"\x89PNG\r\n\x1a\n\0"[..], Some(ImageFormat::Png)),
            (b"\xff\xd8\xff\xe0", Some(ImageFormat::Jpeg)),
            (b"GIF89a..", Some(ImageFormat::Gif)),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Some(ImageFormat::Webp)),
            (b"RIFF\x10\0\0\0WAVEfmt ", None),
            (b"<svg/>", None),
            (b"", None),
        ] {
            assert_eq!(ImageFormat::of(bytes), format, "{bytes:?}");
        }
        assert_eq!(
            ImageFormat::of_path("a/b.c/Shot.JPG"),
            Some(ImageFormat::Jpeg)
        );
        for path in ["png", "a.png/b", "a.svg", "a.png.txt", ""] {
            assert_eq!(ImageFormat::of_path(path), None, "{path}");
        }
    }
}
