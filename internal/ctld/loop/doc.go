// Package loop is the one goroutine that owns the controller and the store's
// writes. Others read the view that it publishes, or send it an event or a
// question. An answer is given when its records are durable.
package loop
