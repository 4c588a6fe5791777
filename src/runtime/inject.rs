//! Panics on purpose, for tests of what a panic in each layer does. Without the feature `test-panics` nothing of it is built
//! but empty functions.

#[cfg(feature = "test-panics")]
static ARMED: std::sync::Mutex<Option<String>> = std::sync::Mutex::new(None);

/// Arms the point of this name: the next time it is passed, it panics, once.
#[cfg(feature = "test-panics")]
pub fn arm(point: &str) {
    *super::sync::lock(&ARMED) = Some(point.to_owned());
}

/// Panics if this point is armed.
#[inline]
pub fn point(name: &str) {
    #[cfg(feature = "test-panics")]
    {
        let armed = {
            let mut armed = super::sync::lock(&ARMED);
            armed.take_if(|armed| armed == name).is_some()
        };
        assert!(!armed, "planted in {name}");
    }
    #[cfg(not(feature = "test-panics"))]
    let _ = name;
}
