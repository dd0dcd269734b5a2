//! The reading end of an output stream.
