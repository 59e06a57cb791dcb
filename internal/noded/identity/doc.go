// Package identity is who this node is: the name and directory that one daemon
// at a time may use, the id of what it remembers, the key and certificate by
// which the controller knows it, and what the machine calls itself. It asks
// the controller for certificates and for nothing else.
package identity
