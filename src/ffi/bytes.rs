//! What crosses the boundary by pointer: text in, places that the caller wants written, buffers out.

use std::ffi::{CStr, c_char};

use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::MAX_BYTES;

/// Length that means: the text ends at its first NUL.
pub const FAWN_NTS: usize = usize::MAX;

/// Text that the library gives to the caller, who owns it and releases it with `fawn_buf_free`.
///
/// `data[len]` is always 0, so that the text can be printed. There may be NULs before it: `len` counts. An empty
/// buffer is `{NULL, 0, 0}`. What a buffer holds may be read from any OS thread until it is freed.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "the name in C")]
pub struct fawn_buf {
    /// UTF-8 text, JSON wherever a function does not say otherwise.
    pub data: *const c_char,
    /// Bytes of text, without the final NUL.
    pub len: libc::size_t,
    /// Whose memory it is: a token of the library that is checked when the buffer is freed. Leave it alone.
    pub owner: usize,
}

impl fawn_buf {
    /// No text.
    pub(super) const EMPTY: fawn_buf = fawn_buf {
        data: std::ptr::null(),
        len: 0,
        owner: 0,
    };

    /// Text that is part of the library. It has no owner, so freeing it frees nothing.
    pub(super) const fn of_static(text: &'static CStr) -> fawn_buf {
        fawn_buf {
            data: text.as_ptr(),
            len: text.count_bytes(),
            owner: 0,
        }
    }
}

/// A place where the caller wants something written, or NULL.
#[derive(Clone, Copy)]
pub(super) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// No place: what is said here is not heard.
    pub(super) const NOWHERE: Self = Out(std::ptr::null_mut());

    /// # Safety
    /// `place` is NULL, or `T`-sized memory that nobody else reads or writes until the call returns. It need not be
    /// aligned or initialised.
    pub(super) const unsafe fn new(place: *mut T) -> Self {
        Out(place)
    }

    /// Whether the caller does not want it.
    pub(super) const fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Writes to the place, if there is one.
    pub(super) fn set(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not NULL, and then writable by the contract of `new`; alignment is not assumed.
            unsafe { self.0.write_unaligned(value) };
        }
    }

    /// Refuses a call that would make something nobody can reach.
    ///
    /// # Errors
    /// [`ErrorCode::Argument`] if the place is NULL.
    pub(super) fn required(self) -> Result<(), Error> {
        if self.is_null() {
            let message = "`out` is NULL: there is no place for the handle";
            return Err(Error::new(ErrorCode::Argument, message));
        }
        Ok(())
    }
}

impl Out<fawn_buf> {
    /// Takes the buffer that is in the place, and leaves an empty one. An empty one if there is no place.
    pub(super) fn take(self) -> fawn_buf {
        if self.0.is_null() {
            return fawn_buf::EMPTY;
        }
        // SAFETY: not NULL, and then readable by the contract of the one function that calls this.
        let buf = unsafe { self.0.read_unaligned() };
        self.set(fawn_buf::EMPTY);
        buf
    }
}

/// The text of an input parameter. It is borrowed: whoever needs it after the call copies it.
///
/// `len` counts bytes; [`FAWN_NTS`] means up to the first NUL. NULL with 0 is empty text.
///
/// # Errors
/// [`ErrorCode::Argument`] for NULL with a length, [`ErrorCode::TooLarge`] above 1 GiB (known before a byte is read, unless
/// the length is `FAWN_NTS`), [`ErrorCode::NotUtf8`] with the offset of the first bad byte. `name` is the parameter's.
///
/// # Safety
/// `data` is NULL, or `len` bytes at `data` (with `FAWN_NTS`, all up to a NUL) can be read and do not change until the
/// call returns.
pub(super) unsafe fn text<'a>(
    name: &str,
    data: *const c_char,
    len: usize,
) -> Result<&'a str, Error> {
    if data.is_null() {
        return match len {
            0 => Ok(""),
            FAWN_NTS => Err(Error::new(
                ErrorCode::Argument,
                format!("`{name}` is NULL where NUL-terminated text is needed"),
            )),
            len => Err(Error::new(
                ErrorCode::Argument,
                format!("`{name}` is NULL, with a length of {len}"),
            )),
        };
    }
    let bytes = if len == FAWN_NTS {
        // SAFETY: not NULL, and NUL-terminated by this function's contract.
        unsafe { CStr::from_ptr(data) }.to_bytes()
    } else if len > MAX_BYTES {
        return Err(too_large(name, len));
    } else {
        // SAFETY: not NULL, `len` is far below `isize::MAX`, and the bytes are readable by this function's contract.
        unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) }
    };
    if bytes.len() > MAX_BYTES {
        return Err(too_large(name, bytes.len()));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        Error::new(
            ErrorCode::NotUtf8,
            format!(
                "`{name}` is not UTF-8: the byte at offset {} begins no character",
                error.valid_up_to()
            ),
        )
    })
}

fn too_large(name: &str, len: usize) -> Error {
    Error::new(
        ErrorCode::TooLarge,
        format!("`{name}` has {len} bytes, which is more than 1 GiB"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: Option<&[u8]>, len: usize) -> Result<&str, ErrorCode> {
        let data = data.map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast());
        // SAFETY: every length below is that of the bytes, is refused before reading, or ends at a NUL in them.
        unsafe { text("json", data, len) }.map_err(|error| error.code)
    }

    #[test]
    fn null_and_lengths_follow_the_rules() {
        assert_eq!(read(None, 0), Ok(""));
        assert_eq!(read(None, 1), Err(ErrorCode::Argument));
        assert_eq!(read(None, FAWN_NTS), Err(ErrorCode::Argument));
        assert_eq!(read(Some(b"abc\0def"), FAWN_NTS), Ok("abc"));
        assert_eq!(read(Some(b"abc\0def"), 7), Ok("abc\0def"));
        assert_eq!(read(Some(b"abc"), 0), Ok(""));
        for len in [MAX_BYTES + 1, isize::MAX as usize, usize::MAX - 1] {
            assert_eq!(read(Some(b"abc"), len), Err(ErrorCode::TooLarge));
        }
    }

    #[test]
    fn text_that_is_not_utf8_is_refused_with_the_offset() {
        let bytes = b"ab\xc3\xa9\xff";
        // SAFETY: the length is that of the bytes.
        let error = unsafe { text("json", bytes.as_ptr().cast(), bytes.len()) }.unwrap_err();
        assert_eq!(error.code, ErrorCode::NotUtf8);
        assert!(error.message.contains("offset 4"), "{}", error.message);
        assert_eq!(read(Some(b"\xed\xa0\x80"), 3), Err(ErrorCode::NotUtf8));
        assert_eq!(read(Some(b"a\xe2\x82"), 3), Err(ErrorCode::NotUtf8));
    }

    #[test]
    fn places_may_be_null_or_unaligned() {
        // SAFETY: NULL is allowed.
        let none = unsafe { Out::<u64>::new(std::ptr::null_mut()) };
        none.set(1);
        assert_eq!(none.required().unwrap_err().code, ErrorCode::Argument);
        let mut bytes = [0u8; 9];
        // SAFETY: eight bytes from the second on are ours.
        let odd = unsafe { Out::<u64>::new(bytes[1..].as_mut_ptr().cast()) };
        odd.set(u64::from_ne_bytes(*b"unaligne"));
        assert_eq!(&bytes[1..], b"unaligne");
    }
}
