package client

import "encoding/json"

// decode reads an answer into out.
func decode(data []byte, out any) error { return json.Unmarshal(data, out) }
