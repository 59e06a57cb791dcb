// Package client speaks the wire contract (internal/api) to the controller:
// one method per endpoint, for the commands and for the node daemon.
//
// It finds the controller and the caller's token, turns answers that are not
// 2xx into *api.Error and connections that fail into *Unreachable, and repeats
// what is safe to repeat. It prints nothing and keeps no state but open
// connections; values it returns belong to the caller. It is the only package
// on the client side that knows HTTP.
package client
