package peers

import (
	"net"
	"sync"
)

// boundedConn counts until it is closed.
type boundedConn struct {
	net.Conn
	once sync.Once
	done func()
}

func (c *boundedConn) Close() error {
	c.once.Do(c.done)
	return c.Conn.Close()
}
