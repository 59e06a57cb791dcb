// Package network gives ranks networks of their own and takes ports of the
// node for them, and says who has a port that is not free. Interfaces and
// firewall rules themselves are package netns's.
package network
