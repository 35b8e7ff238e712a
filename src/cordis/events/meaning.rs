//! Which answers to a question say something.

/// Whether an answer says something. Nothing, null and false do not; zero and an empty text do.
pub trait Meaningful: 'static {
    /// The answer without the ways to say nothing.
    type Value: 'static;
    /// The answer, if it says something.
    fn meaningful(self) -> Option<Self::Value>;
}

impl<T: 'static> Meaningful for Option<T> {
    type Value = T;

    fn meaningful(self) -> Self {
        self
    }
}

impl Meaningful for bool {
    type Value = Self;

    fn meaningful(self) -> Option<Self> {
        self.then_some(true)
    }
}

impl Meaningful for serde_json::Value {
    type Value = Self;

    fn meaningful(self) -> Option<Self> {
        Some(self).filter(|value| !matches!(value, Self::Null | Self::Bool(false)))
    }
}

macro_rules! always_meaningful {
    ($($type:ty)*) => { $(
        impl Meaningful for $type {
            type Value = Self;

            fn meaningful(self) -> Option<Self> {
                Some(self)
            }
        }
    )* };
}

always_meaningful!(String i32 i64 u32 u64 usize f64);

impl<T: 'static> Meaningful for Vec<T> {
    type Value = Self;

    fn meaningful(self) -> Option<Self> {
        Some(self)
    }
}
