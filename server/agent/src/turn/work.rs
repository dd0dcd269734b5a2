//! The work on turns that a replica may do now.

/// The work on turns that a replica may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnWork {
    /// It claims turns and carries them.
    All,
    /// It claims none. Those that it has it carries to the next point where the model would be asked, or where they
    /// only wait; there it lets go of them. It tells other replicas of the turns that they may claim.
    LetsGo,
    /// None: other replicas may have its turns by now. Its workers are dropped where they stand.
    Stopped,
}
