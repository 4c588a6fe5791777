//go:build !fawn_pkgconfig

package cabi

// Header and library of the checkout that this module lies in, after `make lib` (or a debug build). CGO_CFLAGS and
// CGO_LDFLAGS come before these flags, so they name another place.

// #cgo CFLAGS: -I${SRCDIR}/../../../../include
// #cgo LDFLAGS: -L${SRCDIR}/../../../../target/release -L${SRCDIR}/../../../../target/debug -lfawn
// #cgo LDFLAGS: -Wl,-rpath,${SRCDIR}/../../../../target/release -Wl,-rpath,${SRCDIR}/../../../../target/debug
import "C"
