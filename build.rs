//! Link settings of the shared library: a SONAME from the first build, and never unloaded.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if matches!(os.as_str(), "linux" | "freebsd" | "android") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfawn.so.0");
        // Unloading a library with thread-local destructors crashes the host.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
