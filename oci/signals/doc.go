// Package signals finds out which of a container's processes a signal is for, by
// what the kernel says of them, and sends it. It owns nothing.
package signals
