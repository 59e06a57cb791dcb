// Package unpack reads one layer of a container image, which a stranger made:
// it decompresses it, checks its digest and writes its files into a directory,
// with whiteouts in overlay's form. What a layer may not have is left out or
// refused: device nodes, attributes that steer the kernel, too many entries,
// bytes or names, owners out of bounds.
//
// It runs in a process without rights (package image), so it does not mark
// directories as opaque but says which are to be. It fetches nothing, keeps no
// state, and trusts its caller alone. What it returns is the caller's.
package unpack
