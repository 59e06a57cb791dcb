// Package confine keeps a thread, and with it the container that it begins, from
// what is not a file: signals, abstract sockets and keys of the host. It owns
// nothing, and what it does cannot be taken back.
package confine
