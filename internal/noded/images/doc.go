// Package images holds images for the ranks that run on them, and pulls some
// ahead for jobs that wait. Pulling and unpacking themselves are the image
// store's.
package images
