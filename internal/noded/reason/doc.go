// Package reason has the one error by which a part of the node says why a rank
// cannot start or go on, with the reason that the controller is told and a
// sentence for the user. What is wrong inside the node is no such error: users
// are sent to its administrator. It also knows by which names users know the
// node's directories.
package reason
