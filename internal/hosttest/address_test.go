package hosttest

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// TestFreeAddress: an address that was given is not given again, nor to who listens at any; nobody answers there until somebody
// listens, who may do so again and again.
func TestFreeAddress(t *testing.T) {
	given := map[string]bool{}
	for range 300 { // the kernel draws from some thousands: without care some would come twice
		address, err := FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if given[address] || given[l.Addr().String()] {
			t.Errorf("%s, or %s, was given twice", address, l.Addr())
		}
		_ = l.Close() // nothing was said there
		given[address] = true
	}
	for address := range given {
		if c, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("who calls %s gets %v, %v", address, c, err)
		}
		for range 2 {
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Close(), l.Close() // nothing was said there
		}
	}
}
