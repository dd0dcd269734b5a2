//! What has a message of its own on the wire, with both directions in one place.

/// What a message of the wire carries, in both directions. `E` is said where it cannot be read.
pub(super) trait OnWire<E>: Sized {
    type Wire;

    fn to_wire(self) -> Self::Wire;
    fn from_wire(wire: Self::Wire) -> Result<Self, E>;
}

/// Makes both directions, where the message has the same fields, from one list of their names. A field
/// that is missing does not compile.
macro_rules! alike {
    ($($name:ident { $($field:ident),* $(,)? })*) => {$(
        impl<E> $crate::wire::alike::OnWire<E> for shared_sandbox::$name {
            type Wire = proto::v1::$name;

            fn to_wire(self) -> Self::Wire {
                let Self { $($field),* } = self;
                proto::v1::$name { $($field),* }
            }

            fn from_wire(wire: Self::Wire) -> Result<Self, E> {
                let proto::v1::$name { $($field),* } = wire;
                Ok(Self { $($field),* })
            }
        }
    )*};
}

pub(super) use alike;
