//! The types that have a message of their own on the wire, with both directions in one place.

use proto::v1::{self, file_digest, listed_entry};
use shared_sandbox::EntryKind;
use shared_types::{Digest, DigestAlgorithm, FileDigest, Refusal};

use super::{Malformed, invalid};

/// The content of a message of the wire, in both directions. `E` is the error where it cannot be
/// read.
pub(super) trait OnWire<E>: Sized {
    type Wire;

    fn to_wire(self) -> Self::Wire;
    fn from_wire(wire: Self::Wire) -> Result<Self, E>;
}

/// The content of a field `W` of a message, in both directions.
pub(super) trait Field<W>: Sized {
    fn put(self) -> W;
    fn take(wire: W) -> Result<Self, Unread>;
}

/// The name of the thing that a field does not carry.
#[derive(Debug)]
pub(super) struct Unread(&'static str);

impl From<Unread> for Refusal {
    fn from(Unread(what): Unread) -> Self {
        invalid(what)
    }
}

impl From<Unread> for Malformed {
    fn from(Unread(what): Unread) -> Self {
        Self(format!("a result carries no {what} that can be understood"))
    }
}

/// Makes both directions of a message from one list of its fields' names. A field that is missing does
/// not compile.
macro_rules! alike {
    ($($name:ident { $($field:ident),* $(,)? })*) => {$(
        impl<E: From<$crate::wire::alike::Unread>> $crate::wire::alike::OnWire<E>
            for shared_sandbox::$name
        {
            type Wire = proto::v1::$name;

            fn to_wire(self) -> Self::Wire {
                let Self { $($field),* } = self;
                proto::v1::$name { $($field: $crate::wire::alike::Field::put($field)),* }
            }

            fn from_wire(wire: Self::Wire) -> Result<Self, E> {
                let proto::v1::$name { $($field),* } = wire;
                Ok(Self { $($field: $crate::wire::alike::Field::take($field)?),* })
            }
        }
    )*};
}

pub(super) use alike;

/// Most fields are the same on both sides.
impl<T> Field<T> for T {
    fn put(self) -> T {
        self
    }

    fn take(wire: T) -> Result<T, Unread> {
        Ok(wire)
    }
}

impl Field<Vec<u8>> for Digest {
    fn put(self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn take(wire: Vec<u8>) -> Result<Self, Unread> {
        Self::from_slice(&wire).ok_or(Unread("digest of 32 bytes"))
    }
}

impl Field<i32> for DigestAlgorithm {
    fn put(self) -> i32 {
        match self {
            Self::Sha256 => file_digest::Algorithm::Sha256,
            Self::Blake3 => file_digest::Algorithm::Blake3,
        }
        .into()
    }

    fn take(wire: i32) -> Result<Self, Unread> {
        match file_digest::Algorithm::try_from(wire) {
            Ok(file_digest::Algorithm::Sha256) => Ok(Self::Sha256),
            Ok(file_digest::Algorithm::Blake3) => Ok(Self::Blake3),
            Ok(file_digest::Algorithm::Unspecified) | Err(_) => {
                Err(Unread("algorithm of a digest"))
            }
        }
    }
}

impl Field<Option<v1::FileDigest>> for FileDigest {
    fn put(self) -> Option<v1::FileDigest> {
        Some(v1::FileDigest {
            algorithm: self.algorithm.put(),
            value: self.value.put(),
        })
    }

    fn take(wire: Option<v1::FileDigest>) -> Result<Self, Unread> {
        let wire = wire.ok_or(Unread("digest"))?;
        Ok(Self {
            algorithm: DigestAlgorithm::take(wire.algorithm)?,
            value: Digest::take(wire.value)?,
        })
    }
}

impl Field<Option<v1::FileDigest>> for Option<FileDigest> {
    fn put(self) -> Option<v1::FileDigest> {
        self.and_then(Field::put)
    }

    fn take(wire: Option<v1::FileDigest>) -> Result<Self, Unread> {
        wire.map(|wire| FileDigest::take(Some(wire))).transpose()
    }
}

/// Makes both directions from one list; a kind that is missing does not compile.
macro_rules! entry_kinds {
    ($($kind:ident)*) => {
        impl Field<i32> for EntryKind {
            fn put(self) -> i32 {
                match self {
                    $(Self::$kind => listed_entry::Kind::$kind.into(),)*
                }
            }

            fn take(wire: i32) -> Result<Self, Unread> {
                match listed_entry::Kind::try_from(wire) {
                    $(Ok(listed_entry::Kind::$kind) => Ok(Self::$kind),)*
                    Ok(listed_entry::Kind::Unspecified) | Err(_) => {
                        Err(Unread("kind of an entry"))
                    }
                }
            }
        }
    };
}

entry_kinds! { File Directory Link Other }
