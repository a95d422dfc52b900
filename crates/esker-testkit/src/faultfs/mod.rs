//! x
/// x
pub struct FaultFs;
