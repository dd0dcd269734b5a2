//! The web, for the tools of the model.

#[cfg(test)]
mod markdown;
