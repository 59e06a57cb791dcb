// Package cores knows which processors of the node belong to which rank. It
// sets nothing: the rank's control group does.
package cores
