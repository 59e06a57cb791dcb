// Package netns gives each container of a node a network of its own: an
// address, a way out through the node's, names, and TCP ports published on the
// node. It knows nothing of containers or jobs; a caller's name for whom a
// network belongs to, the owner, is all that it keeps.
//
// # What is on the host
//
// A namespace is joined to the host by a pair of virtual interfaces, with one
// address on each side and a route between them; there is no bridge. The host
// side is called gbTTTTTTTT-NNNN, where T is a hash of the node's name and N
// the number of the address in the node's subnet, and its alias is the owner:
// this is the whole register of addresses, kept by the kernel and so true
// after any crash. One nftables table, gbTTTTTTTT, translates addresses on the
// way out and keeps networks apart.
//
// A namespace has no name anywhere. It lives as long as something holds it, an
// open file or a process in it, and its interfaces go with it: a crash between
// any two steps leaves nothing that [Network.Sweep] does not find.
//
// # Who may reach whom
//
// A network reaches what the node reaches, by IPv4, but neither other networks
// of the node nor the node's own addresses, except for name servers, ports
// that are published, and those in [Config.HostPorts]. Nothing reaches into a
// network but by its published ports. Addresses cannot be forged. IPv6 ends at
// the node: a published port may be reached by it, a network has none.
//
// # Gangs
//
// Namespaces on several nodes may share a network besides, see [Gang]: each
// has a tunnel (VXLAN, UDP port [TunnelPort] of the nodes) whose device lies in
// the namespace and whose packets travel by the host's network. Two sets of the
// node's table say which nodes may send into which tunnel.
//
// # Published ports
//
// [Listen] takes a port on the node and [Forward] passes connections on into
// the namespace, from whatever process holds both. There is no address
// translation for it, so that ports work from the node itself too, and for
// servers that listen on the loopback interface of their container.
package netns
