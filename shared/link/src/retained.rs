//! The writing end of an output stream.
