// Package pki is a site's own certificate authority: the controller makes it
// at its first start, shows certificates of it, and signs the nodes' keys. The
// other side knows it by its pin, the hash of the authority's public key, and
// needs no file and no name of the machine.
//
// It holds keys and certificates, and nothing of who may do what.
package pki
