//go:build !amd64

package crash

import "syscall"

// Where registers have other names nothing is left out.
func leaveOut(int) { panic("crash: calls are refused on amd64 alone") }

func fails(int, syscall.Errno) {}
