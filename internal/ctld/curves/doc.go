// Package curves keeps what ranks have used over their time, while they run and after
// that: each in a few kilobytes, whose points stand for longer the longer a rank
// runs, and all within a bound. It does not say who may see them.
package curves
