package launches

import (
	"net"
	"time"
)

// writeTimeout bounds how long one who does not read can hold others up.
const writeTimeout = time.Second

func write(c net.Conn, b []byte) error {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := c.Write(b)
	return err
}
