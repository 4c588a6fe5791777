//go:build fawn_pkgconfig

package cabi

// An installed library (`make install`), found by pkg-config. This is also how a vendored copy of the module is built.

// #cgo pkg-config: fawn
import "C"
